/// @file direct.cu
/// @brief Naive CUDA: one thread per row and channel, sum and count in registers.
///
/// - Before: cpu_reference/sparse_avg_pool/direct.cpp
/// - After: cuda_optimized/sparse_avg_pool/vectorized.cu
///
/// **The idea.** Each element of y belongs to one thread, which adds its candidates tap by tap and
/// keeps sum and count in registers. No two threads write to the same address, so no atomics are
/// needed, and the order of summation is fixed.
///
///     nbr          out 0  1  2  3            thread (out = 2, c):
///       k = 0        -1  0 -1  2               k = 0   -
///       k = 1         0  1  2  3               k = 1   sum = features[2][c]         count 1
///       k = 2         1 -1  3 -1               k = 2   sum += features[3][c]        count 2
///                                              y[2][c] = sum / 2
///
/// **Expect.** KV loads of nbr per element of y: all C channels of a row load the same entries. The
/// lanes of a warp have neighbouring channels of one row, so a load of nbr reads one address, and
/// loads of features are coalesced.
/// @expect lanes.workspace.atomic 0
/// @expect loads_per_output.nbr 27, KV for each element of y
/// @expect loads_per_output.features 3838 / 512 = 7.496, of 3838 pairs and 512 rows
/// @expect sectors_per_request.nbr.load 1, one address
/// @expect launches 1
/// **Costs.** Most of the loads are loads of nbr, of which about 70 % return -1 in the layers of a
/// LiDAR sweep. With fewer than 32 channels, a warp spans several rows.
/// **Try.** Replace the division by a multiplication with 1.0f / count. Which test fails, and for
/// which counts?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_avg_pool.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_avg_pool {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more elements, a thread computes several
                                              ///< (grid-stride loop).

/// features [N][C], nbr [KV][M], y [M][C]. Launch with any one-dimensional grid.
__global__ void sparse_avg_pool_direct(SparsePoolProblem pool, const float* features,
                                       const std::int32_t* nbr, float* y) {
  const std::int64_t C = pool.C, M = pool.M;
  for (const std::int64_t i : grid_stride(M * C)) {
    const std::int64_t row = i / C, c = i % C;
    float sum = 0.0f;
    int count = 0;
    for (std::int64_t k = 0; k < pool.book.KV; ++k) {
      const std::int32_t in = nbr[k * M + row];
      if (in < 0) continue;
      sum += features[in * C + c];
      ++count;
    }
    y[i] = count == 0 ? 0.0f : sum / static_cast<float>(count);
  }
}

void run(const SparsePoolProblem& pool, const SparseAvgPoolArrays& arrays, const Context&) {
  const std::int64_t outputs = std::int64_t{pool.M} * pool.C;
  launch(sparse_avg_pool_direct, {blocks_for(outputs, kThreads, kMaxBlocks), kThreads}, pool,
         arrays.features, arrays.nbr, arrays.y);
}

}  // namespace

extern const Implementation<SparseAvgPoolArrays> direct = {
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_avg_pool
