/// @file masked_taps.cu
/// @brief sparse_max_pool: tap masks; only the entries of the table that exist are read.
///
/// - Before: vectorized.cu
/// - The same maths: cpu_reference/sparse_max_pool/direct.cpp
///
/// **The idea.** The rulebook has a mask for each output row: bit k is set where nbr[k] has an
/// entry. One load gives 32 taps, and its set bits, from the lowest up, are the taps to visit.
///
///     mask[row] = 0...0 0101 0010      k = 1, 4, 6:  three loads of nbr instead of KV
///     lowest set bit   __ffs(bits) - 1          clear it   bits & (bits - 1)
///
/// **Expect.** Loads of nbr fall from KV to the number of candidates, in half-32-k3s2 from 27 to
/// about 8 a row, plus one load of the mask; the loads of features stay. A warp iterates as often
/// as its row with the most taps needs, instead of KV times.
/// @expect loads_per_output.nbr 3838 / (2 * 512) / 4 = 0.937, of 3838 pairs; 512 rows
/// @expect loads_per_output.mask 1 / 2 / 4 = 0.125, one a row
/// @expect loads_per_output.features 3838 / (2 * 512) / 4 = 0.937, as before
/// **Costs.** The rows of a warp read different taps at the same time: entries of nbr that were
/// contiguous, those of neighbouring rows at tap k, are now scattered over the table. Where nearly
/// all taps exist, the plain loop is as fast.
/// **Try.** Load the entry of the next set bit before the features of this one are compared. What
/// does that cost in registers?
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

/// features [N][C], nbr [KV][M], mask [M][words], y [M][C], argmax [M][C]; C is a multiple of
/// kWidth. Block (vectors, rows); any grid (rows, vectors).
template <int kWidth>
__global__ void sparse_max_pool_masked_taps(SparsePoolProblem pool, const float* features,
                                            const std::int32_t* nbr, const std::int32_t* mask,
                                            float* y, std::int32_t* argmax) {
  const std::int64_t C = pool.C, M = pool.M;
  const int words = mask_words(pool.book.KV);
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
      for (int word = 0; word < words; ++word) {
        auto bits = static_cast<std::uint32_t>(mask[row * words + word]);
        for (; bits != 0; bits &= bits - 1) {
          const std::int64_t k = 32 * word + __ffs(static_cast<int>(bits)) - 1;
          const std::int32_t in = nbr[k * M + row];
          const auto feature = Vector<float, kWidth>::load(features + in * C + c);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            if (from.at[i] < 0 || exceeds(feature.at[i], best.at[i])) {
              best.at[i] = feature.at[i];
              from.at[i] = in;
            }
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
  const auto kernel = vector == 4   ? sparse_max_pool_masked_taps<4>
                      : vector == 2 ? sparse_max_pool_masked_taps<2>
                                    : sparse_max_pool_masked_taps<1>;
  launch(kernel, {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool,
         features, arrays.nbr, arrays.mask, y, argmax);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int vector = vector_width(pool.C, {});
  const int width = threads_along(pool.C / vector, kWidest);
  return text("vectors of ", vector, ", ", width, width == 1 ? " thread a row" : " threads a row",
              pool.C / vector > width ? ", more vectors than threads" : "");
}

}  // namespace

extern const Implementation<SparseMaxPoolArrays> masked_taps = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
