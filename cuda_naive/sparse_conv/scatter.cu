/// @file scatter.cu
/// @brief Scatter: one thread per pair and output channel, with atomic additions.
///
/// - Before: cpu_reference/sparse_conv/direct.cpp
/// - After: cuda_optimized/sparse_conv/output_stationary.cu
///
/// **The idea.** Each pair is processed by Cout threads. A thread computes its dot product in a
/// register and then adds it to y. Pairs of several taps have the same output row, and their
/// threads run concurrently, so the addition must be atomic. The order of the atomic additions
/// varies, and two runs may differ in the last bits.
///
///     pair (k = 0, in = 2, out = 0)  --.
///     pair (k = 1, in = 0, out = 0)  ---+--> atomicAdd(y[0][co], ...)    in any order
///     pair (k = 4, in = 7, out = 0)  --`
///
/// **Expect.** Two loads (features, weights) per multiply-add. Neighbouring threads have
/// neighbouring channels: loads of weights are coalesced, and a load of features reads one address.
/// The L2 cache executes pairs * Cout atomics, at most KV per address, so conflicts are rare. A
/// preceding kernel fills y with the bias or zeros; an activation is another pass over y.
/// @expect loads_per_output.features 3838 * 32 / 512 = 239.875, of 3838 pairs, for all products
/// @expect loads_per_output.weights 3838 * 32 / 512 = 239.875, another one
/// @expect lanes_per_output.y.atomic 3838 / 512 = 7.496, one for 32 multiply-adds
/// @expect sectors_per_request.weights.load 4, coalesced
/// @expect sectors_per_request.features.load 1, one address
/// **Costs.** Not deterministic. If Cout is not a multiple of 32, a warp spans several pairs.
/// Supports float32 only.
/// **Try.** Let a thread compute four adjacent output channels of its pair. How many loads of
/// features remain per multiply-add, and how many atomics?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/row_epilogue.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_conv {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more pairs, a thread processes several
                                              ///< (grid-stride loop).

/// features [N][Cin], weights [KV][Cin][Cout], pairs [P][3], y [M][Cout], to which the kernel adds.
/// Launch with any one-dimensional grid.
__global__ void sparse_conv_scatter(SparseConvProblem conv, const float* features,
                                    const float* weights, const std::int32_t* pairs, float* y) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  for (const std::int64_t item : grid_stride(conv.pairs * Cout)) {
    const std::int32_t* pair = pairs + item / Cout * kPairColumns;
    const std::int64_t k = pair[0], in = pair[1], out = pair[2], co = item % Cout;
    float sum = 0.0f;
    for (std::int64_t ci = 0; ci < Cin; ++ci) {
      sum += features[in * Cin + ci] * weights[(k * Cin + ci) * Cout + co];
    }
    atomicAdd(&y[out * Cout + co], sum);
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  float* y = arrays.y;
  launch_fill_rows(conv.M, conv.Cout, arrays.bias, y);
  launch(sparse_conv_scatter, {blocks_for(conv.pairs * conv.Cout, kThreads, kMaxBlocks), kThreads},
         conv, arrays.features, arrays.weights, arrays.pairs, y);
  launch_activate(conv.M, conv.Cout, conv.activation, y);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return conv.activation == Activation::none ? "sums" : "sums, then the activation";
}

}  // namespace

extern const Implementation<SparseConvArrays> scatter = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_conv
