/// @file vectorized.cu
/// @brief sparse_max_pool_dgrad: vectorized loads; a thread computes four neighbouring channels.
///
/// - Before: output_stationary.cu
/// - The same maths: cpu_reference/sparse_max_pool_dgrad/gather.cpp
///
/// **The idea.** As in the forward pass: the outputs of an input are the same for all of its
/// channels, so a thread with four channels reads the table once. It loads four integers of argmax
/// at once, and four floats of dy if the input has won any of the four.
///
///     argmax[out][c0 ... c3] =   5  9  5  7        input 5: adds dy at c0 and c2, not at c1 and c3
///
/// **Expect.** A quarter of the loads of nbr_back and of argmax, as many bytes as before. dy is
/// read 16 bytes at a time, of which some are not used: a warp loads whole sectors of 32 bytes
/// anyway. argmax is still read for each pair, about 8 times for each output in half-32-k3s2, where
/// scatter reads it once.
/// @expect loads_per_output.nbr_back 27 / 4 = 6.75, a quarter
/// @expect loads_per_output.argmax 3838 / 512 / 4 = 1.874, a quarter
/// @expect bytes_per_lane.dy.load 16
/// **Costs.** As in the forward pass: the width falls to two channels or one where C or the
/// alignment of the arrays requires it.
/// **Try.** Load dy before it is known whether the input has won. Latency falls, but traffic grows:
/// which effect dominates where windows overlap?
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/shared/threads_along.cuh"
#include "cuda_optimized/sparse_max_pool/shared/vectors.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool_dgrad {
namespace {

using sparse_max_pool::Vector;

constexpr int kThreads = 256;
constexpr int kWidest = 32;                   ///< Most threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< rows.

/// dy [M][C], argmax [M][C], nbr_back [KV][N], dx [N][C]; C is a multiple of kWidth.
/// Block (vectors, rows); any grid (rows, vectors).
template <int kWidth>
__global__ void sparse_max_pool_dgrad_vectorized(SparsePoolProblem pool, const float* dy,
                                                 const std::int32_t* argmax,
                                                 const std::int32_t* nbr_back, float* dx) {
  const std::int64_t C = pool.C, N = pool.N;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x * kWidth;

  std::int64_t c = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kWidth;
  for (; c < C; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < N; row += grid_rows) {
      Vector<float, kWidth> sum;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum.at[i] = 0.0f;
      for (std::int64_t k = 0; k < pool.book.KV; ++k) {
        const std::int64_t out = nbr_back[k * N + row];
        if (out < 0) continue;
        const auto winner = Vector<std::int32_t, kWidth>::load(argmax + out * C + c);
        bool won = false;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) won = won || winner.at[i] == row;
        if (!won) continue;
        const auto gradient = Vector<float, kWidth>::load(dy + out * C + c);
#pragma unroll
        for (int i = 0; i < kWidth; ++i)
          if (winner.at[i] == row) sum.at[i] += gradient.at[i];
      }
      sum.store(dx + row * C + c);
    }
  }
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolDgradArrays& arrays, const Context&) {
  const auto* dy = arrays.dy;
  const auto* argmax = arrays.argmax;
  auto* dx = arrays.dx;
  const int vector = sparse_max_pool::vector_width(pool.C, {dy, argmax, dx});
  const int width = sparse_max_pool::threads_along(pool.C / vector, kWidest);
  const int height = kThreads / width;
  const dim3 grid(blocks_for(pool.N, height, kMaxBlocks),
                  blocks_for(pool.C / vector, width, kMaxGridYZ));
  const auto kernel = vector == 4   ? sparse_max_pool_dgrad_vectorized<4>
                      : vector == 2 ? sparse_max_pool_dgrad_vectorized<2>
                                    : sparse_max_pool_dgrad_vectorized<1>;
  launch(kernel, {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool,
         dy, argmax, arrays.nbr_back, dx);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int vector = sparse_max_pool::vector_width(pool.C, {});
  const int width = sparse_max_pool::threads_along(pool.C / vector, kWidest);
  return text("vectors of ", vector, ", ", width, width == 1 ? " thread a row" : " threads a row",
              pool.C / vector > width ? ", more vectors than threads" : "");
}

}  // namespace

extern const Implementation<SparseMaxPoolDgradArrays> vectorized = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool_dgrad
