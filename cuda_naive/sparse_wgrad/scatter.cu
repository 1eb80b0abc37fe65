/// @file scatter.cu
/// @brief sparse_wgrad, first on the GPU: one thread takes a pair and an output channel.
///
/// - Before: cpu_reference/sparse_wgrad/direct.cpp
/// - After: cuda_optimized/sparse_wgrad/output_stationary.cu
/// - The same maths: cpu_reference/sparse_wgrad/direct.cpp
///
/// **The idea.** Each pair becomes Cout threads. A thread holds its one value of dy and goes down
/// the input row: a column of the pair's outer product, added to dw element by element.
///
///     pair (k, in, out):      co = 0   1   2   3         one thread a column
///                     ci = 0  [    .   .   .   .  ]      every element an atomicAdd
///                     ci = 1  [    .   .   .   .  ]      to dw[k][ci][co]
///
/// Forward, at most KV addends meet in one place. Here all pairs of a tap do, thousands of them: dw
/// is small, and all threads add to it.
///
/// **Expect.** pairs * Cin * Cout atomics: one for each multiply-add, where the forward pass has
/// one for Cin of them. A warp's atomics are on neighbouring addresses; but the pairs are sorted by
/// tap, so that most warps that run at the same time queue up for the same few lines of L2.
/// @expect lanes_per_output.dw.atomic 3838 / 27 = 142.148, one for each multiply-add of 3838 pairs
/// @expect loads_per_output.features 3838 / 27 = 142.148
/// @expect loads_per_output.dy 3838 / 27 / 32 = 4.442, once for 32 of them
/// **Costs.** Not deterministic, and the slowest rung by far. Declines other types than float32.
/// **Try.** Let neighbouring warps take pairs that are far apart in the list, and so belong to
/// other taps. How many atomics meet at an address at a time now?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_wgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more pairs, threads stride.

/// features [N][Cin], dy [M][Cout], pairs [P][3], dw [KV][Cin][Cout], all zero.
/// Any one-dimensional grid.
__global__ void sparse_wgrad_scatter(SparseConvProblem conv, const float* features, const float* dy,
                                     const std::int32_t* pairs, float* dw) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  for (const std::int64_t item : grid_stride(conv.pairs * Cout)) {
    const std::int32_t* pair = pairs + item / Cout * kPairColumns;
    const std::int64_t k = pair[0], in = pair[1], out = pair[2], co = item % Cout;
    const float gradient = dy[out * Cout + co];
    for (std::int64_t ci = 0; ci < Cin; ++ci) {
      atomicAdd(&dw[(k * Cin + ci) * Cout + co], features[in * Cin + ci] * gradient);
    }
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context&) {
  float* dw = arrays.dw;
  const std::int64_t weights = std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
  check(
      cudaMemsetAsync(dw, 0, static_cast<std::size_t>(weights) * sizeof(float), current_stream()));
  launch(sparse_wgrad_scatter, {blocks_for(conv.pairs * conv.Cout, kThreads, kMaxBlocks), kThreads},
         conv, arrays.features, arrays.dy, arrays.pairs, dw);
}

}  // namespace

extern const Implementation<SparseWgradArrays> scatter = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_wgrad
