#include "oracle/fourier_bound.hpp"

#include <cmath>

#include "core/parallel.hpp"

namespace convladder {
namespace {

double squares(std::span<const float> numbers) {
  double sum = 0;
  for (const float number : numbers) sum += double{number} * double{number};
  return sum;
}

/// The bound of all outputs of a filter in an image: [N][K].
std::vector<double> bounds_of(const Conv2dProblem& conv, const Arrays& inputs) {
  const auto part = [](std::span<const float> array, std::int64_t i, std::int64_t size) {
    return array.subspan(static_cast<std::size_t>(i * size), static_cast<std::size_t>(size));
  };
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  const auto bias = conv.bias ? inputs.at("bias").as<float>() : std::span<const float>();
  const std::int64_t group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;

  std::vector<double> planes(static_cast<std::size_t>(std::int64_t{conv.N} * conv.C));
  parallel_for(static_cast<std::int64_t>(planes.size()), [&](std::int64_t nc) {
    planes[static_cast<std::size_t>(nc)] = squares(part(x, nc, std::int64_t{conv.H} * conv.W));
  });
  std::vector<double> filters(static_cast<std::size_t>(conv.K * group_c));
  for (std::size_t kc = 0; kc < filters.size(); ++kc) {
    filters[kc] = std::sqrt(
        squares(part(weights, static_cast<std::int64_t>(kc), std::int64_t{conv.R} * conv.S)));
  }
  std::vector<double> bounds(static_cast<std::size_t>(std::int64_t{conv.N} * conv.K));
  parallel_for(static_cast<std::int64_t>(bounds.size()), [&](std::int64_t nk) {
    const std::int64_t n = nk / conv.K, k = nk % conv.K, other = n ^ 1;
    const auto plane = [&](std::int64_t image, std::int64_t c) {
      return image < conv.N ? planes[static_cast<std::size_t>(image * conv.C + c)] : 0.0;
    };
    double bound = bias.empty() ? 0 : std::abs(double{bias[static_cast<std::size_t>(k)]});
    for (std::int64_t c = 0; c < group_c; ++c) {
      const std::int64_t channel = k / group_k * group_c + c;
      bound += std::sqrt(plane(n, channel) + plane(other, channel)) *
               filters[static_cast<std::size_t>(k * group_c + c)];
    }
    bounds[static_cast<std::size_t>(nk)] = bound;
  });
  return bounds;
}

}  // namespace

Expected with_fourier_bound(const Expected& expected, const Problem& problem,
                            const Arrays& inputs) {
  const auto& conv = std::get<Conv2dProblem>(problem);
  const std::vector<double> bounds = bounds_of(conv, inputs);
  Expected bounded = expected;
  bounded.passes = kFourierPasses;
  bounded.whole_after_rounding = true;
  const std::size_t plane = static_cast<std::size_t>(std::int64_t{conv.P} * conv.Q);
  for (std::size_t i = 0; i < bounded.magnitude.size(); ++i)
    bounded.magnitude[i] = bounds[i / plane];
  return bounded;
}

std::vector<double> fourier_bound_at(const Problem& problem, const Arrays& inputs,
                                     std::span<const std::int64_t> places) {
  const auto& conv = std::get<Conv2dProblem>(problem);
  const std::vector<double> bounds = bounds_of(conv, inputs);
  std::vector<double> found;
  for (const std::int64_t place : places)
    found.push_back(bounds[static_cast<std::size_t>(place / (std::int64_t{conv.P} * conv.Q))]);
  return found;
}

}  // namespace convladder
