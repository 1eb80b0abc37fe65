/// @file mirrored_table.cu
/// @brief sparse_dgrad: table reuse; under `subm` the gradient reads the table of the forward pass.
///
/// - Before: implicit_gemm.cu
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
/// - The kernel: implicit_gemm.cu
///
/// **The idea.** If a lies at tap k of b, then b lies at the opposite tap of a, KV - 1 - k in
/// row-major order. Under `subm`, input and output rows are the same sites, so the inverse table is
/// the table with its taps reversed:
///
///     dx[in]  = sum over k of  dy[ nbr_back[k][in] ]      x  W_k^T
///             = sum over k of  dy[ nbr[KV - 1 - k][in] ]  x  W_k^T
///             = sum over j of  dy[ nbr[j][in] ]           x  W_(KV - 1 - j)^T       j = KV - 1 - k
///
/// Table, masks and orders are those of the forward pass; only the taps of the weights are
/// reversed. Training needs no nbr_back, no mask_back and no second sort. Even kernel sizes have no
/// centre and no opposite taps, so `subm` permits odd ones only.
///
/// **Expect.** The time of implicit_gemm: the same tiles with reversed taps. The order of additions
/// differs, so last bits may differ. The saving is outside of this launch: nbr_back is 13.6 MB for
/// sweep-64-subm3, and would have to be built and sorted.
/// @expect loads_per_output.nbr 3838 / 16384 = 0.234, of pairs alone; nbr_back is not there
/// @expect loads_per_output.dy 3838 * 8 / 16384 = 1.8740, as in implicit_gemm
/// @expect loads_per_output.weights 328 / 16 = 20.5, likewise
/// **Costs.** Supports only `subm` and float32.
/// **Try.** Reverse the bits of the masks and iterate over k, as spconv does. For which KV does the
/// reversal need a shift?
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_dgrad/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

Declined supports_mirror(const SparseConvProblem& conv) {
  if (conv.book.mode != SparseMode::subm) {
    return text("mode ", name_of(conv.book.mode), ": only under subm is the table its own mirror");
  }
  return declined_by_implicit_gemm(conv);
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr [KV][M] with masks and orders, dx [N][Cin]; N = M.
void run_mirrored(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context&) {
  launch_implicit_gemm({.KV = conv.book.KV,
                        .rows = conv.M,
                        .Cin = conv.Cin,
                        .Cout = conv.Cout,
                        .opposite = true,
                        .table = arrays.nbr,
                        .mask = arrays.mask,
                        .orders = arrays.split_order,
                        .dy = arrays.dy,
                        .weights = arrays.weights,
                        .dx = arrays.dx});
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return implicit_gemm_in_words(conv, conv.M);
}

}  // namespace

extern const Implementation<SparseDgradArrays> mirrored_table = {
    .supports = supports_mirror,
    .run = run_mirrored,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
