/// @file scatter.cu
/// @brief Scatter: one thread per pair and input channel, with atomic additions.
///
/// - Before: cpu_reference/sparse_dgrad/direct.cpp
/// - After: cuda_optimized/sparse_dgrad/output_stationary.cu
///
/// **The idea.** This is the scatter of the forward pass with inputs and outputs exchanged: a
/// thread multiplies the gradient of its pair's output row by one row of the tap's matrix, and adds
/// the result to the input row. An input has one pair per output that reads it, so the additions
/// must be atomic.
///
///     forward:   thread (pair, co)   sum over ci   ->  y[out][co]
///     here:      thread (pair, ci)   sum over co   ->  dx[in][ci]
///
/// **Expect.** Two loads (dy, weights) per multiply-add. A warp's load of dy reads one address. Its
/// load of weights is not coalesced: the layout is [Cin][Cout], so neighbouring threads, which have
/// neighbouring ci, read addresses Cout floats apart. Each of these 32 cache lines is reused in the
/// following steps if it is still cached. pairs * Cin atomics, at most KV per address. dx is zeroed
/// first.
/// @expect sectors_per_request.weights.load 32, not coalesced
/// @expect sectors_per_request.dy.load 1, one address
/// @expect loads_per_output.weights 3838 * 32 / 512 = 239.875, of 3838 pairs, for all products
/// @expect lanes_per_output.dx.atomic 3838 / 512 = 7.496
/// **Costs.** Not deterministic. Supports float32 only.
/// **Try.** Transpose the weights of all taps in a preceding kernel. Which loads are coalesced now,
/// and what does the transposition cost?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more pairs, a thread processes several
                                              ///< (grid-stride loop).

/// dy [M][Cout], weights [KV][Cin][Cout], pairs [P][3], dx [N][Cin], which must be zero. Launch
/// with any one-dimensional grid.
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
