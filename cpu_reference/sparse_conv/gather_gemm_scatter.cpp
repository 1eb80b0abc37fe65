/// @file gather_gemm_scatter.cpp
/// @brief sparse_conv: the pairs of a tap become one matrix product.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/sparse_conv/gather_gemm_scatter.cu
///
/// **The idea.** All pairs of a tap multiply by the same matrix. So copy their input rows together
/// (gather), multiply them all at once (GEMM: Eigen), and add the rows of the product to the output
/// rows that they belong to (scatter). SparseConvNet and the first spconv work this way.
///
///     features        gathered                      product          y
///     row 0 ---.   .-> [ Cin ]                    [ Cout ] -.    ,-> row 0
///     row 1     `--|-> [ Cin ]  x  [Cin x Cout] = [ Cout ] --|--`    row 1
///     row 2 -------`                   W_k                    `----> row 2
///
/// Taps follow one another. At one tap no row occurs in two pairs, so an output row receives at
/// most one addend a tap. Its sum runs over the taps in their order, whatever the order of the
/// pairs inside of a tap.
///
/// **Expect.** With many channels, the product runs near the core's arithmetic peak. Beside it, a
/// pair moves 3 Cin + 4 Cout floats: its row is read and written by the gather and read by the
/// product; its product is written, read by the scatter, and added to y, which is read and written.
/// **Costs.** Workspace for the largest tap: most_pairs * (Cin + Cout) floats. With few channels
/// the copies cost more than the product. Declines other types than float32.
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
