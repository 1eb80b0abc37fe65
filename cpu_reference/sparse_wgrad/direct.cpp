/// @file direct.cpp
/// @brief sparse_wgrad, rung 1: every pair adds one outer product to its tap.
///
/// - After: gather_gemm_scatter.cpp (the pairs of a tap as one matrix product)
/// - On the GPU: cuda_naive/sparse_wgrad/scatter.cu
///
/// **The idea.** Forward, the weight (k, ci, co) multiplied the value ci of an input row and went
/// into the value co of an output row, for each pair of tap k. So its gradient collects the
/// products of these two, over all pairs of the tap:
///
///     dw_k  +=   features[in]   x   dy[out]          for each pair (k, in, out)
///
///               |  |          [ . . . . ]
///          Cin  |  |     x       Cout        =   [ Cin x Cout ]     an outer product
///               |  |
///
/// A tap without pairs has the gradient zero.
///
/// **Expect.** pairs * Cin * Cout multiply-adds, as forward; here it is KV sums of length pairs /
/// KV for each ci and co, so few and long ones.
/// **Costs.** All of dw_k is read and written for every pair. Declines other types than float32.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_wgrad {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], dw [KV][Cin][Cout].
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

Implementation<SparseConvProblem> direct() { return {.supports = supports, .run = run}; }

}  // namespace convladder::cpu_reference::sparse_wgrad
