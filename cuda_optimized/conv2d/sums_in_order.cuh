/// @file sums_in_order.cuh
/// @brief The sums of a warp, handed to its lanes in the order of a row: a store of 32 neighbours
/// where four at a time are not aligned.
#pragma once

#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Calls body(m, n, sum) for all sums of a warp so that its 32 lanes have 32 neighbours of a row of
/// the block's tile: the sums change hands through shared memory. A lane's n are the same for every
/// row.
/// @param shared a row of every thread: kThreads * kThreadN floats, for this alone
template <class T, class Body>
__device__ void for_each_in_order(const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                                  float* shared, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int lane_m = tile.m % T::kWarpM / 4, lane_n = tile.n % T::kWarpN;
  const int warp_m = tile.m - lane_m * 4, warp_n = tile.n - lane_n;
  float* const rows = shared + warp * (T::kLanesM * T::kWarpN);  // this warp's own
#pragma unroll
  for (int i = 0; i < T::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < T::kThreadN; j += 4) {
      *reinterpret_cast<float4*>(rows + lane_m * T::kWarpN + lane_n + T::column(j)) =
          float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
    }
    __syncwarp();  // separates these stores from the loads below
#pragma unroll
    for (int row = 0; row < T::kLanesM; ++row) {
#pragma unroll
      for (int n = 0; n < T::kWarpN; n += 32) {
        body(warp_m + row * 4 + T::row(i), warp_n + n + lane, rows[row * T::kWarpN + n + lane]);
      }
    }
    __syncwarp();  // separates these loads from the stores of the threads' next rows
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
