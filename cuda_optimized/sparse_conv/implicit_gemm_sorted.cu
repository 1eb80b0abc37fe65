/// @file implicit_gemm_sorted.cu
/// @brief sparse_conv: rows with the same taps stand in the same tile.
///
/// - Before: implicit_gemm.cu
/// - After: implicit_gemm_split.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
/// - The kernel: implicit_gemm.cu
///
/// **The idea.** A tile does every tap that any of its rows has. Neighbours in space have similar
/// surroundings, but not the same ones: one row of 32 with a tap costs as much as 32. So the
/// rulebook sorts the rows by their masks, and a tile takes 32 neighbours of *that* order. The
/// kernel stays the same; only the number of a tile's m-th row is another one.
///
///     order of the rows    taps of the rows      of a tile of 2
///     0 1 2 3              X.X  .X.  X.X  XX.    XXX  XXX     6 taps for 7 pairs: 12 / 7
///     1 3 0 2  (sorted)    .X.  XX.  X.X  X.X    XX.  X.X     4 taps:              8 / 7
///
/// **Expect.** In sweep-64-subm3, executed over useful falls from 2.7 to 1.56 at tiles of 32 rows,
/// and the time by as much: to 0.55 ms on an H200. Two levels further down a network, at 16 pairs a
/// row, it falls only from 1.41 to 1.12: there is less to skip.
/// **Costs.** A sort of the rows by their masks, once for each rulebook; all layers over it share
/// it. Rows of a tile lie anywhere in memory: their entries of nbr, and the rows of y, are read and
/// written one by one. Declines what implicit_gemm declines.
/// **Try.** Order the rows by how many taps they have, instead of which.
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// As implicit_gemm, and order [M].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  ImplicitGemm product = implicit_gemm_of(conv, arrays);
  product.order = arrays.in<std::int32_t>("order");
  launch_implicit_gemm(product);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return implicit_gemm_in_words(conv.Cout);
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_sorted() {
  return {.supports = supports, .run = run, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
