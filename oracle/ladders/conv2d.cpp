/// @file conv2d.cpp
/// @brief Definition of conv2d.
#include "oracle/ladders/conv2d_products.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder::oracle {
namespace conv2d {
namespace {

std::int64_t longest_sum(const Conv2dProblem& conv) {
  return std::int64_t{conv.C / conv.groups} * conv.R * conv.S + 1;  // and the bias
}

std::vector<Expected> outputs(const Conv2dProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  Expected y = expected_for(conv2d_signature(conv).outputs[0], longest_sum(conv));
  parallel_for(std::int64_t{conv.N} * conv.K, [&](std::int64_t nk) {
    const int n = static_cast<int>(nk / conv.K), k = static_cast<int>(nk % conv.K);
    if (conv.bias) {
      const double bias = inputs.at("bias").as<float>()[static_cast<std::size_t>(k)];
      const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
      for (std::int64_t i = nk * plane; i < (nk + 1) * plane; ++i) accumulate(y, i, bias, 1.0);
    }
    for_each_row_of_products(
        conv, n, k, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi, std::int64_t count) {
          accumulate_row(y, yi, 1, at(weights, wi), {x, xi, conv.stride.w}, count);
        });
  });
  // The magnitude remains that of the whole sum: |relu(a) - relu(b)| <= |a - b|, so the bound on
  // the sum's rounding also holds after ReLU.
  if (conv.activation == Activation::relu) {
    for (double& value : y.values) value = value < 0 ? 0 : value;
  }
  return {y};
}

ExpectedElement element(const Conv2dProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  const Indices y(place, p.K, p.P, p.Q);  // n k p q
  const std::int64_t channels = p.C / p.groups, first = y.b / (p.K / p.groups) * channels;
  ExpectedElement sum;
  if (p.bias) add(sum, at(inputs.at("bias").as<float>(), y.b), 1.0);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (int r = 0; r < p.R; ++r) {
      const std::int64_t h = y.c * p.stride.h - p.pad.top + std::int64_t{r} * p.dilation.h;
      for (int s = 0; s < p.S; ++s) {
        const std::int64_t w = y.d * p.stride.w - p.pad.left + std::int64_t{s} * p.dilation.w;
        if (h < 0 || h >= p.H || w < 0 || w >= p.W) continue;
        add(sum, at(x, ((y.a * p.C + first + c) * p.H + h) * p.W + w),
            at(weights, ((y.b * channels + c) * p.R + r) * p.S + s));
      }
    }
  }
  if (p.activation == Activation::relu && sum.value < 0) sum.value = 0;
  return sum;
}

}  // namespace
}  // namespace conv2d

Definition conv2d_definition() {
  return define<Conv2dProblem>({.longest_sum = conv2d::longest_sum,
                                .outputs = conv2d::outputs,
                                .element = conv2d::element,
                                .headroom = winograd_forward_headroom,
                                .winograd = with_winograd_bound,
                                .spectra = with_fourier_bound});
}

}  // namespace convladder::oracle
