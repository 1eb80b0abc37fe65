/// @file gemm.cpp
/// @brief The matrix product.
#include "core/gemm_problem.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace gemm {
namespace {

std::int64_t longest_sum(const GemmProblem& p) { return p.K; }

/// A sum times the problem's scale, rounded once to float.
double scaled(const GemmProblem& p, double sum) {
  return double{static_cast<float>(double{p.scale()} * sum)};
}

std::vector<Expected> outputs(const GemmProblem& p, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  Expected c = expected_for(gemm_signature(p).outputs[0], p.K);
  parallel_for(p.M, [&](std::int64_t m) {
    for (std::int64_t k = 0; k < p.K; ++k) {
      accumulate_row(c, m * p.N, 1, at(a, m * p.K + k), {b, k * p.N}, p.N);
    }
    for (std::int64_t i = m * p.N; p.dtype == DType::f8 && i < (m + 1) * p.N; ++i) {
      const auto element = static_cast<std::size_t>(i);
      c.values[element] = scaled(p, c.values[element]);
      c.magnitude[element] *= double{p.scale()};
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
  if (p.dtype == DType::f8) sum = {scaled(p, sum.value), double{p.scale()} * sum.magnitude};
  return sum;
}

}  // namespace
}  // namespace gemm

Definition gemm_definition() {
  return define<GemmProblem>(
      {.longest_sum = gemm::longest_sum, .outputs = gemm::outputs, .element = gemm::element});
}

}  // namespace convladder::oracle
