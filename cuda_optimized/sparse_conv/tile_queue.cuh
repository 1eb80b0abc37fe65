/// @file tile_queue.cuh
/// @brief Tiles of rows in the order of their work, the longest first;
/// cuda_optimized/sparse_conv/implicit_gemm_longest_first.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// Tiles in buckets by their number of taps. Within a bucket they stand in any order, which may be
/// another in every run: that changes when a tile is computed, not what.
struct TileQueue {
  static constexpr int kBuckets = 32;  ///< As many as a warp has lanes.
  std::int32_t* counts = nullptr;      ///< [kBuckets]: tiles of each; null: there is no queue
  std::int32_t* tiles = nullptr;       ///< [kBuckets][capacity]: their numbers
  std::int64_t capacity = 0;           ///< All tiles: they may be in one bucket.

  /// The tile that stands at a place, 0 the first. A whole warp calls it with the same place.
  __device__ std::int64_t tile_at(std::int64_t place) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, bucket = kBuckets - 1 - lane;
    const std::int32_t mine = counts[bucket];
    std::int32_t through = mine;  // tiles of this lane's bucket and those before it
    for (int apart = 1; apart < 32; apart *= 2) {
      const std::int32_t before = __shfl_up_sync(~0u, through, static_cast<unsigned>(apart));
      if (lane >= apart) through += before;
    }
    const int holder = __ffs(static_cast<int>(__ballot_sync(~0u, place < through))) - 1;
    const std::int32_t before = __shfl_sync(~0u, through - mine, holder);
    return tiles[(kBuckets - 1 - holder) * capacity + place - before];
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
