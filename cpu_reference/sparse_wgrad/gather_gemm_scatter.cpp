/// @file gather_gemm_scatter.cpp
/// @brief Gather and GEMM: both rows of a tap's pairs are gathered, then one GEMM per tap.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_naive/sparse_wgrad/scatter.cu (without the copies)
///
/// **The idea.** The sum of a tap's outer products is a GEMM whose inner extent is the number of
/// its pairs. The rows of features and the rows of dy are gathered and multiplied:
///
///            pairs of k               Cout                Cout
///     Cin [ features^T ]  x  pairs [   dy   ]  =  Cin [  dw_k  ]
///
/// No scatter is needed, although the rung shares its name with its neighbours: each tap writes its
/// own dw_k.
///
/// **Expect.** A pair moves 3 (Cin + Cout) floats in addition to the GEMM. The result is small and
/// the sum long: Eigen cuts the sum into blocks that fit the caches.
/// **Costs.** Workspace for the largest tap: most_pairs * (Cin + Cout) floats. The order of
/// summation, and thus the rounding, depends on the order of the pairs. Supports float32 only.
#include <algorithm>

#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cpu_reference/gemm/product.hpp"
#include "cpu_reference/sparse_conv/gather_scatter.hpp"

namespace convladder::cpu_reference::sparse_wgrad {
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

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context& context) {
  const float* features = arrays.features;
  const float* dy = arrays.dy;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  const auto* offsets = needed("offsets", arrays.offsets, conv.book.KV);
  float* dw = arrays.dw;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  for (std::int64_t k = 0; k < conv.book.KV; ++k) {
    const std::int64_t count = offsets[k + 1] - offsets[k];
    float* dw_k = dw + k * Cin * Cout;
    if (count == 0) {
      std::fill_n(dw_k, Cin * Cout, 0.0f);  // a tap that no pair uses
      continue;
    }
    const std::int32_t* pairs_k = pairs + std::int64_t{offsets[k]} * kPairColumns;
    float* inputs = context.workspace_as<float>();  // [count][Cin]
    float* gradients = inputs + count * Cin;        // [count][Cout]

    gather_rows(features, pairs_k, count, Side::in, Cin, inputs);
    gather_rows(dy, pairs_k, count, Side::out, Cout, gradients);
    gemm::multiply(Cin, Cout, count, gemm::transpose(inputs), {gradients}, dw_k);
  }
}

}  // namespace

extern const Implementation<SparseWgradArrays> gather_gemm_scatter = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_wgrad
