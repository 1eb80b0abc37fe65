/// @file output_stationary.cu
/// @brief sparse_max_pool: output-stationary; each thread compares the candidates of one output.
///
/// - Before: cuda_naive/sparse_max_pool/scatter.cu
/// - After: vectorized.cu
/// - The same maths: cpu_reference/sparse_max_pool/direct.cpp
///
/// **The idea.** One thread owns one output. nbr[k][out] is its candidate at tap k, or -1; two
/// registers hold the value and the row of the maximum so far. Taps ascend, and a candidate must
/// exceed the maximum, so the first of equal candidates is kept.
///
///     nbr          out 0  1  2  3            thread (out = 2, c):
///       k = 0        -1  0 -1  2               k = 0   no candidate
///       k = 1         0  1  2  3               k = 1   best = features[2][c], row 2
///       k = 2         1 -1  3 -1               k = 2   features[3][c] exceeds it? row 3
///
/// **Expect.** No atomics, no workspace, one launch. y and argmax are written once: 8 bytes an
/// element, where scatter moves 24 bytes for the keys alone. The threads of a warp have
/// neighbouring channels of one row: loads of features are coalesced, loads of nbr are broadcasts.
/// @expect lanes.workspace.atomic 0
/// @expect loads_per_output.nbr 27 / 2 = 13.5, KV for an element of y and one of argmax
/// @expect sectors_per_request.nbr.load 1, one address
/// @expect sectors_per_request.features.load 4, coalesced
/// @expect launches 1
/// **Costs.** Reads all KV * M entries of nbr, of which about 70 % are -1 in the layers of a LiDAR
/// sweep (half-32-k3s2, sweep-16-k2s2). The loads of features depend on those entries. With fewer
/// than 32 channels a warp spans several rows and executes each tap that one of them has.
/// **Try.** Load the entries of two taps before the features of the first one. How many registers
/// does that need?
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_max_pool/shared/threads_along.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool {
namespace {

constexpr int kThreads = 256;
constexpr int kWidest = 32;                   ///< Most threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< rows.

/// features [N][C], nbr [KV][M], y [M][C], argmax [M][C].
/// Block (channels, rows); any grid (rows, channels).
__global__ void sparse_max_pool_output_stationary(SparsePoolProblem pool, const float* features,
                                                  const std::int32_t* nbr, float* y,
                                                  std::int32_t* argmax) {
  const std::int64_t C = pool.C, M = pool.M;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x;

  std::int64_t c = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  for (; c < C; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < M; row += grid_rows) {
      float best = 0.0f;  // the result of an output without any candidate
      std::int32_t from = -1;
      for (std::int64_t k = 0; k < pool.book.KV; ++k) {
        const std::int32_t in = nbr[k * M + row];
        if (in < 0) continue;
        const float feature = features[in * C + c];
        if (from < 0 || exceeds(feature, best)) {
          best = feature;
          from = in;
        }
      }
      y[row * C + c] = best;
      argmax[row * C + c] = from;
    }
  }
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  auto* y = arrays.y;
  auto* argmax = arrays.argmax;
  const int width = threads_along(pool.C, kWidest);
  const int height = kThreads / width;
  const dim3 grid(blocks_for(pool.M, height, kMaxBlocks), blocks_for(pool.C, width, kMaxGridYZ));
  launch(sparse_max_pool_output_stationary,
         {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, pool, features,
         arrays.nbr, y, argmax);
}

std::string choice_in_words(const SparsePoolProblem& pool) {
  const int width = threads_along(pool.C, kWidest);
  return text(width, width == 1 ? " thread a row" : " threads a row",
              pool.C > width ? ", more channels than threads" : "");
}

}  // namespace

extern const Implementation<SparseMaxPoolArrays> output_stationary = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
