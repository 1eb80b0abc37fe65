/// @file scatter.cu
/// @brief Scatter: one thread per element of dy, with an atomic addition.
///
/// - Before: cpu_reference/sparse_max_pool_dgrad/direct.cpp
/// - After: cuda_optimized/sparse_max_pool_dgrad/output_stationary.cu
///
/// **The idea.** A thread has an output and a channel, reads which input won there, and adds its
/// gradient to that input. An input may have won in several windows, whose threads run
/// concurrently: the additions must be atomic.
///
///     thread (out, c)    in = argmax[out][c]      atomicAdd(dx[in][c], dy[out][c])
///
/// spconv adds without atomics, with one launch per tap: at one tap no input occurs twice, so no
/// two threads of a launch write the same address. This takes KV launches, each of which reads
/// features and y again.
///
/// **Expect.** M * C atomics, fewer than in a scatter over pairs, and 8 bytes read for each. Loads
/// are coalesced; neighbouring channels often have the same winner, and then the atomics are
/// coalesced, too. dx is zeroed first.
/// @expect lanes_per_output.dx.atomic 1, of as many inputs as outputs
/// @expect loads_per_output.argmax 1
/// @expect loads_per_output.dy 1
/// **Costs.** Not deterministic: if three or more gradients are added to one element, their order
/// changes the last bits.
/// **Try.** Replace atomicAdd() by a plain addition. Which tests still pass, and why?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_max_pool_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more outputs, a thread processes several
                                              ///< (grid-stride loop).

/// dy [M][C], argmax [M][C], dx [N][C], which must be zero. Launch with any one-dimensional grid.
__global__ void sparse_max_pool_dgrad_scatter(SparsePoolProblem pool, const float* dy,
                                              const std::int32_t* argmax, float* dx) {
  const std::int64_t C = pool.C;
  for (const std::int64_t i : grid_stride(pool.M * C)) {
    const std::int64_t in = argmax[i];
    if (in >= 0) atomicAdd(&dx[in * C + i % C], dy[i]);
  }
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolDgradArrays& arrays, const Context&) {
  float* dx = arrays.dx;
  const std::int64_t inputs = std::int64_t{pool.N} * pool.C;
  check(cudaMemsetAsync(dx, 0, static_cast<std::size_t>(inputs) * sizeof(float), current_stream()));
  launch(sparse_max_pool_dgrad_scatter,
         {blocks_for(std::int64_t{pool.M} * pool.C, kThreads, kMaxBlocks), kThreads}, pool,
         arrays.dy, arrays.argmax, dx);
}

}  // namespace

extern const Implementation<SparseMaxPoolDgradArrays> scatter = {
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_max_pool_dgrad
