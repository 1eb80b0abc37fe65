/// @file implicit_gemm_split.cu
/// @brief sparse_conv: two passes over half of the taps each, every one in an order of its own.
///
/// - Before: implicit_gemm_sorted.cu (one order for all taps)
/// - After: implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** 27 taps make 2^27 masks, and a sweep has tens of thousands of different ones: even
/// sorted, most tiles hold several. 14 taps make 2^14: most tiles hold one. So the taps are cut in
/// two halves, the rows sorted once for each, and the second pass adds to what the first has
/// stored. Bias goes in with the first, the activation with the second.
///
///     taps 0 ... 13, rows in order 0:    y[row]  =      bias + sum of the first half
///     taps 14 ... 26, rows in order 1:   y[row] +=             sum of the second
///
/// **Expect.** In a simulated sweep of 125,562 sites, executed over useful falls from 1.56 to 1.14
/// at tiles of 32 rows: 0.40 ms at 64 channels. A tuning run had 0.52: with fewer taps a tile, its
/// beginning and end, in which nothing is multiplied, count more. The price is one more reading and
/// writing of y, 64 MB or some 15 us, and one more launch.
/// **Costs.** A second sort in the rulebook. Each row's sum is rounded in two parts, which no order
/// of the rows changes: still the same bits in every run. Declines what implicit_gemm declines.
///
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
