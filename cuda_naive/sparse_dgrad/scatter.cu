/// @file scatter.cu
/// @brief sparse_dgrad, first on the GPU: one thread takes a pair and an input channel.
///
/// - Before: cpu_reference/sparse_dgrad/direct.cpp
/// - After: cuda_optimized/sparse_dgrad/output_stationary.cu
/// - The same maths: cpu_reference/sparse_dgrad/direct.cpp
///
/// **The idea.** The scatter of the forward pass with its arrow turned round: a thread multiplies
/// the gradient of its pair's output row by one row of the tap's matrix, and adds the result to the
/// input row. An input has a pair for each output that reads it, so here too the additions must be
/// atomic.
///
///     forward:   thread (pair, co)   sum over ci   ->  y[out][co]
///     here:      thread (pair, ci)   sum over co   ->  dx[in][ci]
///
/// **Expect.** Two loads (dy, weights) for each multiply-add. Those of dy are of one address in a
/// warp. Those of weights are not coalesced: the matrix lies as [Cin][Cout], so neighbouring
/// threads, which have neighbouring ci, read addresses that lie Cout floats apart. Each of these 32
/// cache lines is used again in the next steps, if it is still there. pairs * Cin atomics, at most
/// KV for an address. dx is zeroed first.
/// @expect sectors_per_request.weights.load 32, not coalesced
/// @expect sectors_per_request.dy.load 1, one address
/// @expect loads_per_output.weights 3838 * 32 / 512 = 239.875, of 3838 pairs, for all products
/// @expect lanes_per_output.dx.atomic 3838 / 512 = 7.496
/// **Costs.** Not deterministic. Declines other types than float32.
/// **Try.** Transpose the weights of all taps in a kernel before, and read them so. Which loads are
/// coalesced now, and what does the transposition cost beside the rest?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More pairs than these take: threads stride.

/// dy [M][Cout], weights [KV][Cin][Cout], pairs [P][3], dx [N][Cin], all zero.
/// Any one-dimensional grid.
__global__ void sparse_dgrad_scatter(SparseConvProblem conv, const float* dy, const float* weights,
                                     const std::int32_t* pairs, float* dx) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  for (const std::int64_t item : grid_stride(conv.pairs * Cin)) {
    const std::int32_t* pair = pairs + item / Cin * kPairColumns;
    const std::int64_t k = pair[0], in = pair[1], out = pair[2], ci = item % Cin;
    float sum = 0.0f;
    for (std::int64_t co = 0; co < Cout; ++co) {
      sum += dy[out * Cout + co] * weights[(k * Cin + ci) * Cout + co];
    }
    atomicAdd(&dx[in * Cin + ci], sum);
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context&) {
  float* dx = arrays.dx;
  const std::int64_t outputs = std::int64_t{conv.N} * conv.Cin;
  check(
      cudaMemsetAsync(dx, 0, static_cast<std::size_t>(outputs) * sizeof(float), current_stream()));
  launch(sparse_dgrad_scatter, {blocks_for(conv.pairs * conv.Cin, kThreads, kMaxBlocks), kThreads},
         conv, arrays.dy, arrays.weights, arrays.pairs, dx);
}

}  // namespace

extern const Implementation<SparseDgradArrays> scatter = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_dgrad
