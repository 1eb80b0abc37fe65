/// @file vectorized.cu
/// @brief sparse_avg_pool, rung 2 on the GPU: a thread has four neighbouring channels.
///
/// - Before: cuda_naive/sparse_avg_pool/direct.cu
/// - The same maths: cpu_reference/sparse_avg_pool/direct.cpp
///
/// **The idea.** The candidates of a row, and so their number, are the same for all of its
/// channels. A thread that has four channels loads each entry of nbr once instead of four times,
/// and counts once. Its load of a candidate's features and its store of y are one instruction each,
/// of 16 bytes.
///
///     before   thread:  c0            nbr, features[in][c0]             C = 64: two warps a row
///     here     thread:  c0 c1 c2 c3   nbr, features[in][c0 ... c3]      C = 64: two rows a warp
///
/// A block is a rectangle of vectors and rows, so that no thread divides by C.
///
/// **Expect.** A quarter of the loads of nbr and of features. The bytes of features stay the same,
/// but a thread has four times as many of them in flight.
/// @expect loads_per_output.nbr 27 / 4 = 6.75, a quarter
/// @expect bytes_per_lane.features.load 16
/// @expect loads_per_output.features 3838 / 512 / 4 = 1.874, of 3838 pairs and 512 rows
/// **Costs.** Where C is odd, or an array does not begin at a multiple of 16 bytes, a vector has
/// only two channels, or one. More rows share a warp, which runs through the taps of all of them.
/// **Try.** Read the row's mask and visit its set bits alone, as sparse_max_pool's masked_taps
/// does. Where does the count come from then?
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/threads_along.cuh"
#include "cuda_optimized/sparse_max_pool/vectors.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_avg_pool {
namespace {

using sparse_max_pool::Vector;

constexpr int kThreads = 256;
constexpr int kWidest = 32;  ///< At most so many threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more rows, blocks stride.

/// features [N][C], nbr [KV][M], y [M][C]; C is a multiple of kWidth.
/// Block (vectors, rows); any grid (rows, vectors).
template <int kWidth>
__global__ void average_rows(SparsePoolProblem pool, const float* features, const std::int32_t* nbr,
                             float* y) {
  const std::int64_t C = pool.C, M = pool.M;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x * kWidth;

  std::int64_t c = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kWidth;
  for (; c < C; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < M; row += grid_rows) {
      Vector<float, kWidth> sum;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum.at[i] = 0.0f;
      int count = 0;
      for (std::int64_t k = 0; k < pool.book.KV; ++k) {
        const std::int32_t in = nbr[k * M + row];
        if (in < 0) continue;
        const auto feature = Vector<float, kWidth>::load(features + in * C + c);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.at[i] += feature.at[i];
        ++count;
      }
      if (count != 0) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum.at[i] /= static_cast<float>(count);
      }
      sum.store(y + row * C + c);
    }
  }
}

void run(const SparsePoolProblem& pool, const SparseAvgPoolArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  auto* y = arrays.y;
  const int vector = sparse_max_pool::vector_width(pool.C, {features, y});
  const int width = sparse_max_pool::threads_along(pool.C / vector, kWidest);
  const int height = kThreads / width;
  const dim3 grid(blocks_for(pool.M, height, kMaxBlocks),
                  blocks_for(pool.C / vector, width, kMaxGridYZ));
  const auto kernel = vector == 4   ? average_rows<4>
                      : vector == 2 ? average_rows<2>
                                    : average_rows<1>;
  launch(kernel, {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool,
         features, arrays.nbr, y);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int vector = sparse_max_pool::vector_width(pool.C, {});
  const int width = sparse_max_pool::threads_along(pool.C / vector, kWidest);
  return text("vectors of ", vector, ", ", width, width == 1 ? " thread a row" : " threads a row",
              pool.C / vector > width ? ", more vectors than threads" : "");
}

}  // namespace

extern const Implementation<SparseAvgPoolArrays> vectorized = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_avg_pool
