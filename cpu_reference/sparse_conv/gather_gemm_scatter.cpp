/// @file gather_gemm_scatter.cpp
/// @brief Gather, GEMM, scatter: one GEMM for the gathered rows of each tap.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/sparse_conv/gather_gemm_scatter.cu
///
/// **The idea.** All pairs of a tap use the same matrix. Their input rows are copied together
/// (gather), multiplied in one GEMM (Eigen), and the result rows are added to the output rows
/// (scatter). SparseConvNet and the first spconv use this method.
///
///     features        gathered                      product          y
///     row 0 ---.   .-> [ Cin ]                    [ Cout ] -.    ,-> row 0
///     row 1     `--|-> [ Cin ]  x  [Cin x Cout] = [ Cout ] --|--`    row 1
///     row 2 -------`                   W_k                    `----> row 2
///
/// Taps are processed in order. At one tap no row occurs in two pairs, so an output row receives at
/// most one term per tap. Its sum runs over the taps in order, whatever the order of the pairs
/// within a tap.
///
/// **Expect.** With many channels, the GEMM runs close to the core's arithmetic peak. In addition,
/// a pair moves 3 Cin + 4 Cout floats: the gather reads and writes its row, and the GEMM reads it;
/// the GEMM writes the result, and the scatter reads it and reads and writes y.
/// **Costs.** Workspace for the largest tap: most_pairs * (Cin + Cout) floats. With few channels
/// the copies take longer than the GEMM. Supports float32 only.
#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cpu_reference/gemm/product.hpp"
#include "cpu_reference/sparse_conv/gather_scatter.hpp"

namespace convladder::cpu_reference::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return static_cast<std::size_t>(
      checked_product({conv.most_pairs, std::int64_t{conv.Cin} + conv.Cout, sizeof(float)},
                      "bytes of gathered rows"));
}

/// features [N][Cin], weights [KV][Cin][Cout], pairs [P][3], offsets [KV + 1], y [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context& context) {
  const float* features = arrays.features;
  const float* weights = arrays.weights;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  const auto* offsets = needed("offsets", arrays.offsets, conv.book.KV);
  float* y = arrays.y;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  const auto* bias = arrays.bias;
  for (std::int64_t i = 0; i < conv.M * Cout; ++i) y[i] = bias != nullptr ? bias[i % Cout] : 0.0f;
  for (std::int64_t k = 0; k < conv.book.KV; ++k) {
    const std::int64_t count = offsets[k + 1] - offsets[k];
    if (count == 0) continue;
    const std::int32_t* pairs_k = pairs + std::int64_t{offsets[k]} * kPairColumns;
    float* gathered = context.workspace_as<float>();  // [count][Cin]
    float* product = gathered + count * Cin;          // [count][Cout]

    gather_rows(features, pairs_k, count, Side::in, Cin, gathered);
    gemm::multiply(count, Cout, Cin, {gathered}, {weights + k * Cin * Cout}, product);
    scatter_add_rows(product, pairs_k, count, Side::out, Cout, y);
  }
  for (std::int64_t i = 0; i < conv.M * Cout; ++i) y[i] = activated(conv.activation, y[i]);
}

}  // namespace

extern const Implementation<SparseConvArrays> gather_gemm_scatter = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_conv
