/// @file direct.cu
/// @brief sparse_global_pool, first on the GPU: one thread for each image and channel.
///
/// - Before: cpu_reference/sparse_global_pool/direct.cpp
/// - After: cuda_optimized/sparse_global_pool/row_parts.cu
/// - The same maths: cpu_reference/sparse_global_pool/direct.cpp
///
/// **The idea.** A thread owns one element of y. It walks over all rows, reads the batch id of each
/// and joins the feature of those that belong to its image. No two threads write to the same
/// address, and each adds its rows in their order: the result has the same bits in every run.
///
///     thread (n = 1, c):   row   0  1  2  3  4
///                           n    0  1  0  1  1
///                                -  j  -  j  j      y[1][c] = joined, three rows
///
/// **Expect.** Neighbouring threads have neighbouring channels, so that loads of features are
/// coalesced and loads of batch ids are of one address. There are only batch * C threads: a GPU has
/// room for a hundred times as many, and each of them waits for one load after the other.
/// @expect loads_per_output.coords 512, every row's batch id for each element of y
/// @expect loads_per_output.features 512, all rows belong to the one image
/// @expect sectors_per_request.coords.load 1, one address
/// @expect launches 1
/// **Costs.** The time is that of one thread's walk over all rows, whatever the GPU.
/// **Try.** Keep two accumulators, for even and for odd rows, and join them at the end. Does the
/// mean of integers change? And that of real data?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_global_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_global_pool {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more elements, threads stride.

/// features [sites][C], coords [sites][1 + ndim], y [batch][C]. Any one-dimensional grid.
__global__ void sparse_global_pool_direct(SparseGlobalPoolProblem pool, const float* features,
                                          const std::int32_t* coords, float* y) {
  const std::int64_t C = pool.C, columns = 1 + pool.grid.ndim;
  for (const std::int64_t i : grid_stride(pool.grid.batch * C)) {
    const std::int64_t n = i / C, c = i % C;
    float value = neutral(pool.reduce);
    int count = 0;
    for (std::int64_t row = 0; row < pool.grid.sites; ++row) {
      if (coords[row * columns] != n) continue;
      value = combined(pool.reduce, value, features[row * C + c]);
      ++count;
    }
    y[i] = finished(pool.reduce, value, count);
  }
}

void run(const SparseGlobalPoolProblem& pool, const SparseGlobalPoolArrays& arrays,
         const Context&) {
  const std::int64_t outputs = std::int64_t{pool.grid.batch} * pool.C;
  launch(sparse_global_pool_direct, {blocks_for(outputs, kThreads, kMaxBlocks), kThreads}, pool,
         arrays.features, arrays.coords, arrays.y);
}

}  // namespace

extern const Implementation<SparseGlobalPoolArrays> direct = {
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_global_pool
