/// @file vectorized.cu
/// @brief sparse_max_pool: vectorized loads; a thread computes four neighbouring channels.
///
/// - Before: output_stationary.cu
/// - After: masked_taps.cu
/// - The same maths: cpu_reference/sparse_max_pool/direct.cpp
///
/// **The idea.** Whether a row has a candidate at a tap is the same for all of its channels. A
/// thread with four channels loads the entry once instead of four times. Its load of the
/// candidate's features and its stores of y and argmax are one 16-byte instruction each.
///
///     before   thread:  c0            nbr, features[in][c0]             C = 64: two warps a row
///     here     thread:  c0 c1 c2 c3   nbr, features[in][c0 ... c3]      C = 64: two rows a warp
///
/// The four maxima stay independent: four comparisons, four winners.
///
/// **Expect.** A quarter of the loads of nbr, and of all instructions that are not comparisons. The
/// bytes stay the same, but more of them are in flight.
/// @expect loads_per_output.nbr 27 / 2 / 4 = 3.375, a quarter
/// @expect bytes_per_lane.features.load 16
/// @expect loads_per_output.features 3838 / (2 * 512) / 4 = 0.937, of 3838 pairs and 512 rows
/// **Costs.** Where the number of channels is odd, or rows are not aligned to 16 bytes, a thread
/// has only two channels or one. More rows share a warp and execute each other's taps.
/// **Try.** Set kWidest to 8. How many rows share a warp at C = 64, and how many taps does it
/// execute?
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/shared/threads_along.cuh"
#include "cuda_optimized/sparse_max_pool/shared/vectors.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool {
namespace {

constexpr int kThreads = 256;
constexpr int kWidest = 32;                   ///< Most threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< rows.

/// features [N][C], nbr [KV][M], y [M][C], argmax [M][C]; C is a multiple of kWidth.
/// Block (vectors, rows); any grid (rows, vectors).
template <int kWidth>
__global__ void sparse_max_pool_vectorized(SparsePoolProblem pool, const float* features,
                                           const std::int32_t* nbr, float* y,
                                           std::int32_t* argmax) {
  const std::int64_t C = pool.C, M = pool.M;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x * kWidth;

  std::int64_t c = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kWidth;
  for (; c < C; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < M; row += grid_rows) {
      Vector<float, kWidth> best;
      Vector<std::int32_t, kWidth> from;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        best.at[i] = 0.0f;  // the result of an output without any candidate
        from.at[i] = -1;
      }
      for (std::int64_t k = 0; k < pool.book.KV; ++k) {
        const std::int32_t in = nbr[k * M + row];
        if (in < 0) continue;
        const auto feature = Vector<float, kWidth>::load(features + in * C + c);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if (from.at[i] < 0 || exceeds(feature.at[i], best.at[i])) {
            best.at[i] = feature.at[i];
            from.at[i] = in;
          }
        }
      }
      best.store(y + row * C + c);
      from.store(argmax + row * C + c);
    }
  }
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  auto* y = arrays.y;
  auto* argmax = arrays.argmax;
  const int vector = vector_width(pool.C, {features, y, argmax});
  const int width = threads_along(pool.C / vector, kWidest);
  const int height = kThreads / width;
  const dim3 grid(blocks_for(pool.M, height, kMaxBlocks),
                  blocks_for(pool.C / vector, width, kMaxGridYZ));
  const auto kernel = vector == 4   ? sparse_max_pool_vectorized<4>
                      : vector == 2 ? sparse_max_pool_vectorized<2>
                                    : sparse_max_pool_vectorized<1>;
  launch(kernel, {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool,
         features, arrays.nbr, y, argmax);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int vector = vector_width(pool.C, {});
  const int width = threads_along(pool.C / vector, kWidest);
  return text("vectors of ", vector, ", ", width, width == 1 ? " thread a row" : " threads a row",
              pool.C / vector > width ? ", more vectors than threads" : "");
}

}  // namespace

extern const Implementation<SparseMaxPoolArrays> vectorized = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
