/// @file gather_gemm_scatter.cpp
/// @brief Gather, GEMM, scatter: one GEMM for the gathered rows of each tap.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_naive/sparse_dgrad/scatter.cu (without the copies)
///
/// **The idea.** As in the forward pass, with inputs and outputs exchanged: the gradients of the
/// output rows of a tap's pairs are gathered, multiplied by the tap's transposed matrix, and added
/// to the input rows.
///
///     dy              gathered                      product          dx
///     row out ------>  [ Cout ]  x  [Cout x Cin] =  [ Cin ] ------>  row in   +=
///                                      W_k^T
///
/// Nothing is transposed in memory: Eigen reads W_k column by column. At one tap no input row
/// occurs in two pairs either, so each row receives at most one term per tap.
///
/// **Expect.** As in the forward pass, with Cin and Cout exchanged: 3 Cout + 4 Cin floats per pair
/// in addition to the GEMM.
/// **Costs.** Workspace for the largest tap: most_pairs * (Cin + Cout) floats. Supports float32
/// only.
#include <algorithm>

#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cpu_reference/gemm/product.hpp"
#include "cpu_reference/sparse_conv/gather_scatter.hpp"

namespace convladder::cpu_reference::sparse_dgrad {
namespace {

using namespace sparse_conv;  // gather_scatter.hpp

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return static_cast<std::size_t>(
      checked_product({conv.most_pairs, std::int64_t{conv.Cin} + conv.Cout, sizeof(float)},
                      "bytes of gathered rows"));
}

/// dy [M][Cout], weights [KV][Cin][Cout], pairs [P][3], offsets [KV + 1], dx [N][Cin].
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context& context) {
  const float* dy = arrays.dy;
  const float* weights = arrays.weights;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  const auto* offsets = needed("offsets", arrays.offsets, conv.book.KV);
  float* dx = arrays.dx;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  std::fill_n(dx, conv.N * Cin, 0.0f);
  for (std::int64_t k = 0; k < conv.book.KV; ++k) {
    const std::int64_t count = offsets[k + 1] - offsets[k];
    if (count == 0) continue;
    const std::int32_t* pairs_k = pairs + std::int64_t{offsets[k]} * kPairColumns;
    float* gathered = context.workspace_as<float>();  // [count][Cout]
    float* product = gathered + count * Cout;         // [count][Cin]

    gather_rows(dy, pairs_k, count, Side::out, Cout, gathered);
    gemm::multiply(count, Cin, Cout, {gathered}, gemm::transpose(weights + k * Cin * Cout),
                   product);
    scatter_add_rows(product, pairs_k, count, Side::in, Cin, dx);
  }
}

}  // namespace

extern const Implementation<SparseDgradArrays> gather_gemm_scatter = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_dgrad
