/// @file block_sum.cuh
/// @brief Running sums: over the threads of a block, and over the rows of a table.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The sum of the values of the threads before this one, and of all: `total`. All threads of a
/// block of kWarps warps call it; warp_sums [kWarps] is shared memory, free again when the next
/// call comes.
///
///     a warp:    3 1 0 2        shuffle_up 1     3 4 1 2       2     3 4 4 6     inclusive
///     the block: each warp adds the sums of the warps before it
template <int kWarps>
__device__ int block_exclusive_sum(int value, int* warp_sums, int* total) {
  constexpr unsigned kWholeWarp = 0xffffffff;  // all lanes take part
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int inclusive = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int before = __shfl_up_sync(kWholeWarp, inclusive, distance);
    if (lane >= distance) inclusive += before;
  }
  __syncthreads();  // all have read the sums of the call before this one
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();  // all warps have written theirs
  int before = 0, all = 0;
#pragma unroll
  for (int other = 0; other < kWarps; ++other) {
    before += other < warp ? warp_sums[other] : 0;
    all += warp_sums[other];
  }
  *total = all;
  return before + inclusive - value;
}

/// Replaces the values [rows][columns] by the sums of those before in their row, and writes the sum
/// of each row: totals [rows]. The first `blocks` blocks, of kThreads, share the work: a row each.
template <int kThreads>
__device__ void row_exclusive_sums(int rows, std::int64_t columns, unsigned blocks,
                                   std::int32_t* values, std::int32_t* totals) {
  constexpr int kWarps = kThreads / 32;
  __shared__ int warp_sums[kWarps];
  for (std::int64_t row = blockIdx.x; row < rows; row += blocks) {
    std::int32_t before = 0;  // in the columns of earlier rounds
    for (std::int64_t first = 0; first < columns; first += kThreads) {
      const std::int64_t column = first + threadIdx.x;
      const int own = column < columns ? values[row * columns + column] : 0;
      int total;
      const int sum = block_exclusive_sum<kWarps>(own, warp_sums, &total);
      if (column < columns) values[row * columns + column] = before + sum;
      before += total;
    }
    if (threadIdx.x == 0) totals[row] = before;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
