/// @file output_stationary.cu
/// @brief sparse_max_pool_dgrad: gather; each thread accumulates the gradients that its input won.
///
/// - Before: cuda_naive/sparse_max_pool_dgrad/scatter.cu
/// - After: vectorized.cu
/// - The same maths: cpu_reference/sparse_max_pool_dgrad/gather.cpp
///
/// **The idea.** One thread owns one element of dx. It iterates over the inverse table and adds the
/// gradients of those windows whose maximum was its input.
///
///     nbr_back[k][in] = out, or -1          argmax[out][c] == in ?   acc += dy[out][c]
///
/// **Expect.** No atomics, no zeroing; deterministic. argmax is read once for each pair and
/// channel, dy only where the input has won, at most M * C times. This should be faster than
/// scatter only where windows do not overlap (kernel = stride: one output for each input).
/// @expect lanes.dx.atomic 0
/// @expect loads_per_output.argmax 3838 / 512 = 7.496, of 3838 pairs and 512 rows
/// @expect loads_per_output.dy 1, where the input has won
/// @expect loads_per_output.nbr_back 27
/// **Costs.** Reads argmax pairs / M times as often as scatter: about 8 times in half-32-k3s2,
/// where windows overlap, and twice in sweep-16-k2s2, where they do not. Needs the inverse table.
/// **Try.** Read mask_back first, as masked_taps of the forward pass does. How many loads of
/// nbr_back remain?
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/shared/threads_along.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr int kWidest = 32;                   ///< Most threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< rows.

/// dy [M][C], argmax [M][C], nbr_back [KV][N], dx [N][C].
/// Block (channels, rows); any grid (rows, channels).
__global__ void sparse_max_pool_dgrad_output_stationary(SparsePoolProblem pool, const float* dy,
                                                        const std::int32_t* argmax,
                                                        const std::int32_t* nbr_back, float* dx) {
  const std::int64_t C = pool.C, N = pool.N;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x;

  std::int64_t c = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  for (; c < C; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < N; row += grid_rows) {
      float sum = 0.0f;
      for (std::int64_t k = 0; k < pool.book.KV; ++k) {
        const std::int64_t out = nbr_back[k * N + row];
        if (out < 0) continue;
        if (argmax[out * C + c] == row) sum += dy[out * C + c];
      }
      dx[row * C + c] = sum;
    }
  }
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolDgradArrays& arrays, const Context&) {
  const auto* dy = arrays.dy;
  const auto* argmax = arrays.argmax;
  auto* dx = arrays.dx;
  const int width = sparse_max_pool::threads_along(pool.C, kWidest);
  const int height = kThreads / width;
  const dim3 grid(blocks_for(pool.N, height, kMaxBlocks), blocks_for(pool.C, width, kMaxGridYZ));
  launch(sparse_max_pool_dgrad_output_stationary,
         {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool, dy,
         argmax, arrays.nbr_back, dx);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int width = sparse_max_pool::threads_along(pool.C, kWidest);
  return text(width, width == 1 ? " thread a row" : " threads a row",
              pool.C > width ? ", more channels than threads" : "");
}

}  // namespace

extern const Implementation<SparseMaxPoolDgradArrays> output_stationary = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool_dgrad
