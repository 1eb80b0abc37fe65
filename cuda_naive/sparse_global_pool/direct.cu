/// @file direct.cu
/// @brief Naive CUDA: one thread per image and channel visits all rows.
///
/// - Before: cpu_reference/sparse_global_pool/direct.cpp
/// - After: cuda_optimized/sparse_global_pool/row_parts.cu
///
/// **The idea.** A thread owns one element of y. It visits all rows, reads the batch index of each,
/// and reduces the features of the rows that belong to its image. No two threads write to the same
/// address, and the order of summation is fixed, so the result has the same bits in every run.
///
///     thread (n = 1, c):   row   0  1  2  3  4
///                           n    0  1  0  1  1
///                                -  j  -  j  j      y[1][c] = joined, three rows
///
/// **Expect.** Neighbouring threads have neighbouring channels, so loads of features are coalesced
/// and a load of batch indices reads one address. There are only batch * C threads, about 1 % of
/// what a GPU can run concurrently, and each waits for one load after the other.
/// @expect loads_per_output.coords 512, every row's batch id for each element of y
/// @expect loads_per_output.features 512, all rows belong to the one image
/// @expect sectors_per_request.coords.load 1, one address
/// @expect launches 1
/// **Costs.** The time is that of one thread's loop over all rows, independent of the GPU's size.
/// **Try.** Keep two accumulators, for even and for odd rows, and combine them at the end. Does the
/// mean of integers change? Does that of real data?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_global_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_global_pool {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more elements, a thread computes several
                                              ///< (grid-stride loop).

/// features [sites][C], coords [sites][1 + ndim], y [batch][C]. Launch with any one-dimensional
/// grid.
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
