/// @file direct.cpp
/// @brief sparse_wgrad, CPU: pair after pair, as the rulebook lists them.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_wgrad {
namespace {

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const float* features = arrays.in<float>("features");
  const float* dy = arrays.in<float>("dy");
  const auto* pairs = arrays.in<std::int32_t>("pairs");
  float* dw = arrays.out<float>("dw");
  std::fill_n(dw, std::int64_t{conv.book.KV} * conv.Cin * conv.Cout, 0.0f);
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (int ci = 0; ci < conv.Cin; ++ci) {
      for (int co = 0; co < conv.Cout; ++co) {
        dw[(k * conv.Cin + ci) * conv.Cout + co] +=
            features[in * conv.Cin + ci] * dy[out * conv.Cout + co];
      }
    }
  }
}

}  // namespace

Implementation<SparseConvProblem> direct() { return {.run = run}; }

}  // namespace convladder::cpu_reference::sparse_wgrad
