/// @file scatter.cu
/// @brief Scatter: one thread per pair and output channel, with atomic additions.
///
/// - Before: cpu_reference/sparse_wgrad/direct.cpp
/// - After: cuda_optimized/sparse_wgrad/output_stationary.cu
///
/// **The idea.** Each pair is processed by Cout threads. A thread holds one value of dy and
/// iterates over the input row: it adds one column of the pair's outer product to dw, element by
/// element.
///
///     pair (k, in, out):      co = 0   1   2   3         one thread a column
///                     ci = 0  [    .   .   .   .  ]      every element an atomicAdd
///                     ci = 1  [    .   .   .   .  ]      to dw[k][ci][co]
///
/// In the forward pass, at most KV terms are added to one address. Here all pairs of a tap, often
/// thousands, are added to one address: dw is small, and all threads add to it.
///
/// **Expect.** pairs * Cin * Cout atomics: one per multiply-add, whereas the forward pass has one
/// per Cin multiply-adds. A warp's atomics have adjacent addresses, but the pairs are sorted by
/// tap, so most concurrent warps contend for the same few cache lines in L2.
/// @expect lanes_per_output.dw.atomic 3838 / 27 = 142.148, one for each multiply-add of 3838 pairs
/// @expect loads_per_output.features 3838 / 27 = 142.148
/// @expect loads_per_output.dy 3838 / 27 / 32 = 4.442, once for 32 of them
/// **Costs.** Not deterministic, and by far the slowest rung of the ladder. Supports float32 only.
/// **Try.** Let neighbouring warps process pairs that are far apart in the list and thus belong to
/// different taps. How many atomics contend for an address now?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_wgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more pairs, a thread processes several
                                              ///< (grid-stride loop).

/// features [N][Cin], dy [M][Cout], pairs [P][3], dw [KV][Cin][Cout], which must be zero. Launch
/// with any one-dimensional grid.
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
