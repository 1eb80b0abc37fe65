/// @file direct.cpp
/// @brief sparse_conv, CPU: pair after pair, as the rulebook lists them.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_conv {
namespace {

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const float* features = arrays.in<float>("features");
  const float* weights = arrays.in<float>("weights");
  const auto* pairs = arrays.in<std::int32_t>("pairs");
  float* y = arrays.out<float>("y");
  std::fill_n(y, conv.M * std::int64_t{conv.Cout}, 0.0f);
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (int ci = 0; ci < conv.Cin; ++ci) {
      for (int co = 0; co < conv.Cout; ++co) {
        y[out * conv.Cout + co] +=
            features[in * conv.Cin + ci] * weights[(k * conv.Cin + ci) * conv.Cout + co];
      }
    }
  }
}

}  // namespace

Implementation<SparseConvProblem> direct() { return {.run = run}; }

}  // namespace convladder::cpu_reference::sparse_conv
