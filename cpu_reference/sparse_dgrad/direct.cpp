/// @file direct.cpp
/// @brief sparse_dgrad, CPU: pair after pair, as the rulebook lists them.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_dgrad {
namespace {

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const float* dy = arrays.in<float>("dy");
  const float* weights = arrays.in<float>("weights");
  const auto* pairs = arrays.in<std::int32_t>("pairs");
  float* dx = arrays.out<float>("dx");
  std::fill_n(dx, conv.N * std::int64_t{conv.Cin}, 0.0f);
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (int ci = 0; ci < conv.Cin; ++ci) {
      for (int co = 0; co < conv.Cout; ++co) {
        dx[in * conv.Cin + ci] +=
            dy[out * conv.Cout + co] * weights[(k * conv.Cin + ci) * conv.Cout + co];
      }
    }
  }
}

}  // namespace

Implementation<SparseConvProblem> direct() { return {.run = run}; }

}  // namespace convladder::cpu_reference::sparse_dgrad
