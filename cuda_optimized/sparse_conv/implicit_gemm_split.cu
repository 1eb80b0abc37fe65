/// @file implicit_gemm_split.cu
/// @brief sparse_conv: two passes over half of the taps each, and each pass has an order of its
/// own.
///
/// - Before: implicit_gemm_sorted.cu
/// - After: implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
/// - The kernel: implicit_gemm.cu
///
/// **The idea.** 27 taps make 2^27 masks, and a sweep has tens of thousands of different ones: even
/// sorted, most tiles hold several. 14 taps make 2^14: most tiles hold one. So the taps are cut in
/// two halves, and the rows sorted once for each. The second pass adds to what the first has
/// stored. Bias goes in with the first, the activation with the second.
///
///     taps 0 ... 13, rows in order 0:    y[row]  =      bias + sum of the first half
///     taps 14 ... 26, rows in order 1:   y[row] +=             sum of the second
///
/// **Expect.** In sweep-64-subm3, executed over useful falls from 1.56 to 1.14 at tiles of 32 rows:
/// 0.40 ms on an H200. The price is one more reading and writing of y, 64 MB or some 15 us, and one
/// more launch. With fewer taps a tile, its beginning and end, in which nothing is multiplied,
/// count more.
/// **Costs.** A second sort in the rulebook. Each row's sum is rounded in two parts, but these do
/// not depend on the order of the rows: the bits are still the same in every run. Declines what
/// implicit_gemm declines.
/// **Try.** Three parts: how far does executed over useful fall, and what does y cost then?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// As implicit_gemm, and split_order [2][M].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  for (int half = 0; half < 2; ++half) {
    launch_implicit_gemm(half_of_implicit_gemm(conv, arrays, half));
  }
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return implicit_gemm_in_words(conv.Cout);
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_split() {
  return {.supports = supports, .run = run, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
