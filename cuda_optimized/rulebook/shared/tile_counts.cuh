/// @file tile_counts.cuh
/// @brief Tiles of rows whose taps a block looks up, and whose pairs it counts.
#pragma once

#include "cuda_optimized/rulebook/shared/runs.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

inline constexpr int kCountThreads = 1024;  ///< Of a block that counts.
inline constexpr int kRowsEach = 8;         ///< Of a lane: their loads are in flight together.
inline constexpr int kTileRows = 32 * kRowsEach;  ///< Of a warp that writes, of 8 that count.

/// Tiles of a problem's rows.
inline std::int64_t tiles_of(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(book.sites, kTileRows);
}

/// The taps that are looked up, from the first on: all, or up to the centre where those behind it
/// are mirrors. They stand in lines along the innermost axis.
struct Taps {
  bool sorted;  ///< The taps behind the centre are mirrors.
  int centre,   ///< The tap that leads a site to itself.
      count,    ///< Taps that are looked up,
      lines;    ///< and the lines in which they stand.

  /// @param KV taps of the kernel
  HOST_DEVICE Taps(int KV, int taps_of_line, bool is_sorted)
      : sorted(is_sorted), centre(KV / 2), count(sorted ? centre + 1 : KV),
        lines(ceil_div(count, taps_of_line)) {}
  /// Whether the list of a tap is the opposite tap's, too.
  __device__ bool is_mirrored(int k) const { return sorted && k < centre; }
};

/// The pairs of a tile, looked up and counted by the warps that share it. In shared memory.
class TileCounts {
 public:
  static constexpr int kAtOnce = runs::kPlaneTaps;          ///< Taps that are counted together.
  static constexpr int kWarps = kTileRows / 32;             ///< Of a tile.
  static constexpr int kTiles = kCountThreads / kTileRows;  ///< Of a block.

  /// Looks up and counts a tile, or one plane of taps of it. All threads of the block call it.
  /// @tparam kCube 27 taps side by side: `parts` planes, of which `task` is one
  /// @param inputs [KV][N], out: where a tap leads each row, or -1
  /// @param counts [taps][tiles], out @returns pairs that this thread has counted
  template <bool kCube, class Index>
  __device__ unsigned long long look_up(const runs::Problem& grid, const std::int32_t* coords,
                                        const Index& index, const Taps& taps, unsigned task,
                                        int parts, std::int64_t tiles, std::int32_t* inputs,
                                        std::int32_t* counts) {
    const std::int64_t tile = task / static_cast<unsigned>(parts);
    const std::int64_t row = tile * kTileRows + threadIdx.x % kTileRows;
    const bool is_row = row < grid.sites;
    runs::Cell cell{-1, {}};
    if (is_row) cell = runs::cell_of<kCube>(grid, coords, row);
    if constexpr (kCube) {
      const int plane = static_cast<int>(task - tile * parts), tap = plane * runs::kPlaneTaps;
      std::uint32_t found = 0;
      if (is_row) found = runs::look_up_plane(grid, cell, index, taps.sorted, plane, row, inputs);
      return count(taps, tap, tile, tiles, found >> tap, counts);
    } else {
      unsigned long long pairs = 0;
      if (is_row) runs::look_up(grid, cell, index, taps.sorted, row, taps.lines, inputs, nullptr);
      for (int tap = 0; tap < taps.count; tap += kAtOnce) {
        std::uint32_t found = 0;
        for (int i = 0; is_row && i < kAtOnce && tap + i < taps.count; ++i) {
          if (inputs[std::int64_t{tap + i} * grid.sites + row] >= 0) found |= 1u << i;
        }
        pairs += count(taps, tap, tile, tiles, found, counts);
      }
      return pairs;
    }
  }

 private:
  /// Counts kAtOnce taps from `first` on, as far as `taps` goes, in this thread's tile; all threads
  /// of the block call it. @param found bit i: this thread's row has tap first + i
  /// @param counts [taps][tiles] @returns what this thread has counted, mirrors too
  __device__ unsigned count(const Taps& taps, int first, std::int64_t tile, std::int64_t tiles,
                            std::uint32_t found, std::int32_t* counts) {
    const int of_block = static_cast<int>(threadIdx.x) / kTileRows;
    const int thread = static_cast<int>(threadIdx.x) % kTileRows;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int hits = __popc(__ballot_sync(runs::kWholeWarp, (found >> i & 1) != 0));
      if (thread % 32 == i) of_warp_[of_block][thread / 32][i] = hits;
    }
    __syncthreads();  // all warps have counted before one of the tile's adds up
    unsigned pairs = 0;
    const int k = first + thread;
    if (thread < kAtOnce && k < taps.count && tile < tiles) {
      int hits = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) hits += of_warp_[of_block][warp][thread];
      counts[k * tiles + tile] = hits;
      pairs = static_cast<unsigned>(taps.is_mirrored(k) ? 2 * hits : hits);
    }
    __syncthreads();  // they are added up before the next taps' counts overwrite them
    return pairs;
  }

  int of_warp_[kTiles][kWarps][kAtOnce];  ///< Shared memory: what the warps of a tile have counted.
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
