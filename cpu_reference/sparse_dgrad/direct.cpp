/// @file direct.cpp
/// @brief sparse_dgrad, rung 1: the forward pass with the arrows turned round.
///
/// - After: gather_gemm_scatter.cpp (the pairs of a tap as one matrix product)
/// - On the GPU: cuda_naive/sparse_dgrad/scatter.cu
///
/// **The idea.** Forward, a pair sends its input row through the matrix of its tap to its output
/// row. Backward, it sends the gradient of the output row through the same matrix, transposed, to
/// the input row. The rulebook stays as it is; its two columns of rows change their roles.
///
///     forward    features[in]  ---- W_k  --->  y[out]
///     backward         dx[in]  <--- W_k^T ---  dy[out]
///
/// An input that no output read has no pair: its gradient is zero.
///
/// **Expect.** pairs * Cin * Cout multiply-adds, as forward. The innermost loop is a dot product
/// along memory. **Costs.** That dot product is one chain of dependent additions, which the
/// compiler may not reorder. Declines other types than float32.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_dgrad {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// dy [M][Cout], weights [KV][Cin][Cout], pairs [P][3], dx [N][Cin].
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

Implementation<SparseConvProblem> direct() { return {.supports = supports, .run = run}; }

}  // namespace convladder::cpu_reference::sparse_dgrad
