/// @file vectorized.cu
/// @brief sparse_avg_pool: vectorized loads; a thread computes four neighbouring channels.
///
/// - Before: cuda_naive/sparse_avg_pool/direct.cu
/// - The same maths: cpu_reference/sparse_avg_pool/direct.cpp
///
/// **The idea.** The candidates of a row, and so their number, are the same for all of its
/// channels. A thread with four channels loads each entry of nbr once instead of four times, and
/// counts once. Its load of a candidate's features and its store of y are one 16-byte instruction
/// each.
///
///     before   thread:  c0            nbr, features[in][c0]             C = 64: two warps a row
///     here     thread:  c0 c1 c2 c3   nbr, features[in][c0 ... c3]      C = 64: two rows a warp
///
/// **Expect.** A quarter of the loads of nbr and of features. The bytes of features stay the same,
/// but a thread has four times as many of them in flight.
/// @expect loads_per_output.nbr 27 / 4 = 6.75, a quarter
/// @expect bytes_per_lane.features.load 16
/// @expect loads_per_output.features 3838 / 512 / 4 = 1.874, of 3838 pairs and 512 rows
/// **Costs.** Where C is odd, or an array is not aligned to 16 bytes, a vector has only two
/// channels, or one. More rows share a warp, which executes the taps of all of them.
/// **Try.** Read the row's mask and visit only its set bits, as sparse_max_pool's masked_taps does.
/// Where does the count come from?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_avg_pool.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/shared/threads_along.cuh"
#include "cuda_optimized/sparse_max_pool/shared/vectors.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_avg_pool {
namespace {

using sparse_max_pool::Vector;

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< vectors.

/// features [N][C], nbr [KV][M], y [M][C]; C is a multiple of kWidth. Any one-dimensional grid.
template <int kWidth>
__global__ void sparse_avg_pool_vectorized(SparsePoolProblem pool, const float* features,
                                           const std::int32_t* nbr, float* y) {
  const std::int64_t C = pool.C, M = pool.M;
  for (const std::int64_t i : grid_stride(M * C / kWidth)) {
    const std::int64_t row = i * kWidth / C, c = i * kWidth % C;
    Vector<float, kWidth> sum;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.at[j] = 0.0f;
    int count = 0;
    for (std::int64_t k = 0; k < pool.book.KV; ++k) {
      const std::int32_t in = nbr[k * M + row];
      if (in < 0) continue;
      const auto feature = Vector<float, kWidth>::load(features + in * C + c);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum.at[j] += feature.at[j];
      ++count;
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j)
      sum.at[j] = count == 0 ? 0.0f : sum.at[j] / static_cast<float>(count);
    sum.store(y + i * kWidth);
  }
}

void run(const SparsePoolProblem& pool, const SparseAvgPoolArrays& arrays, const Context&) {
  const int width = sparse_max_pool::vector_width(pool.C, {arrays.features, arrays.y});
  const std::int64_t vectors = std::int64_t{pool.M} * pool.C / width;
  const auto kernel = width == 4   ? sparse_avg_pool_vectorized<4>
                      : width == 2 ? sparse_avg_pool_vectorized<2>
                                   : sparse_avg_pool_vectorized<1>;
  launch(kernel, {blocks_for(vectors, kThreads, kMaxBlocks), kThreads}, pool, arrays.features,
         arrays.nbr, arrays.y);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  return text("vectors of ", sparse_max_pool::vector_width(pool.C, {}));
}

}  // namespace

extern const Implementation<SparseAvgPoolArrays> vectorized = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_avg_pool
