/// @file gemm.cpp
/// @brief The matrix product.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/gemm_problem.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace gemm {
namespace {

std::int64_t longest_sum(const GemmProblem& p) {
  return std::max<std::int64_t>(1, std::int64_t{p.K} + (p.bias ? 1 : 0));
}

/// bias [N], or nothing.
std::span<const float> bias_of(const GemmProblem& p, const Arrays& inputs) {
  return p.bias ? inputs.at("bias").as<float>() : std::span<const float>();
}

/// What the sum of a column becomes; of numbers of 8 bits, rounded to float after its scale and
/// bias. The magnitude stays that of the whole sum: |relu(a) - relu(b)| <= |a - b|.
ExpectedElement finished(const GemmProblem& p, const ExpectedElement& sum,
                         std::span<const float> bias, std::int64_t n) {
  const double scale = p.scale(), bias_n = bias.empty() ? 0 : at(bias, n);
  double value = scale * sum.value + bias_n;
  if (p.dtype == DType::f8) value = double{static_cast<float>(value)};
  if (p.activation == Activation::relu && value < 0) value = 0;
  return {value, scale * sum.magnitude + std::abs(bias_n)};
}

std::vector<Expected> outputs(const GemmProblem& p, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const auto bias = bias_of(p, inputs);
  Expected c = expected_for(gemm_signature(p).outputs[0], longest_sum(p));
  parallel_for(p.M, [&](std::int64_t m) {
    for (std::int64_t k = 0; k < p.K; ++k) {
      accumulate_row(c, m * p.N, 1, at(a, m * p.K + k), {b, k * p.N}, p.N);
    }
    for (std::int64_t n = 0; n < p.N; ++n) {
      const auto i = static_cast<std::size_t>(m * p.N + n);
      const ExpectedElement element = finished(p, {c.values[i], c.magnitude[i]}, bias, n);
      c.values[i] = element.value;
      c.magnitude[i] = element.magnitude;
    }
  });
  return {c};
}

ExpectedElement element(const GemmProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const std::int64_t m = place / p.N, n = place % p.N;
  ExpectedElement sum;
  for (std::int64_t k = 0; k < p.K; ++k) add(sum, at(a, m * p.K + k), at(b, k * p.N + n));
  return finished(p, sum, bias_of(p, inputs), n);
}

}  // namespace
}  // namespace gemm

Definition gemm_definition() {
  return define<GemmProblem>(
      {.longest_sum = gemm::longest_sum, .outputs = gemm::outputs, .element = gemm::element});
}

}  // namespace convladder::oracle
