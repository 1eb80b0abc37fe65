/// @file tiling.cuh
/// @brief How direct/mma_tf32.cu cuts a problem: tiles of y, their patches of x, and shared memory.
#pragma once

#include <algorithm>
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kBlocksPerSm = 2;  ///< one computes while the other loads or stores
inline constexpr int kMaxRows = 32;     ///< of a tile of y

/// What a kernel computes: a warp has 16 * kFilterTiles filters, and 16 * kGroups pixels at a time.
template <int kFilterTileCount, int kGroupCount, int kWarpCount>
struct PatchShape {
  static constexpr int kFilterTiles = kFilterTileCount;  ///< of 16 filters: all of a block
  static constexpr int kGroups = kGroupCount;            ///< of 16 pixels along a row
  static constexpr int kWarps = kWarpCount;              ///< of a block, at most
  /// A warp's staging buffer: sums of 8 filters on their way to y. An odd multiple of 16 floats, so
  /// that two rows of 16 floats meet 32 banks.
  static constexpr int kDraftPitch = 16 * (kGroupCount | 1);
};
using FourFilterTiles = PatchShape<4, 2, 8>;  ///< 64 filters.
using TwoFilterTiles = PatchShape<2, 4, 8>;   ///< 32 filters.
using OneFilterTile = PatchShape<1, 4, 8>;    ///< 16 filters.

/// How a problem is cut up, and how a block uses its shared memory, all in floats:
///     weights [steps][filter_tiles][32][4] | taps [steps][4][2] | biases [16 * filter_tiles] | 0 |
///     drafts [warps][8][kDraftPitch] | two patches [channels][plane]
struct Tiling {
  int filter_tiles;              ///< of 16 filters, of a block
  int rows, across;              ///< of a tile of y: rows, and groups of 16 columns
  int in_rows, in_columns;       ///< of its patch of x
  int width, shift;              ///< floats of a copy; columns before the first one that is needed
  int pitch, plane;              ///< from a row of the patch to the next, from a channel
  int channels, filters;         ///< of a group
  int depth, steps;              ///< products of a sum; in steps of 8, the last one filled up
  int warps;                     ///< of a block
  Step stride;                   ///< of the problem, 1 where there is one output
  int tiles_down, tiles_across;  ///< of an image of y
  int draft_floats;              ///< of a warp; 0: sums are stored directly, four floats at a time
  FastDivision by_across, by_in_rows, by_tiles_down, by_tiles_across;  ///< divide by them

  /// Floats of the weights, which come first.
  HOST_DEVICE int weight_floats() const { return steps * filter_tiles * 128; }
  /// Where the taps' offsets begin.
  HOST_DEVICE int taps_at() const { return weight_floats(); }
  /// Where the biases begin.
  HOST_DEVICE int biases_at() const { return taps_at() + steps * 8; }
  /// Where a zero lies, which the padding of the last step reads.
  HOST_DEVICE int zero_at() const { return biases_at() + 16 * filter_tiles; }
  /// Where the first warp's draft begins.
  HOST_DEVICE int drafts_at() const { return zero_at() + 4; }
  /// Where the patch `buffer`, 0 or 1, begins.
  HOST_DEVICE int patch_at(int buffer) const {
    return drafts_at() + warps * draft_floats + buffer * channels * plane;
  }
  /// Floats of all.
  HOST_DEVICE int floats() const { return patch_at(2); }
};

/// A tile's first pixel.
struct OutputPixel {
  int n, p, q;  ///< image, row and column of y
};

/// Where a tile of pixels lies.
__device__ inline OutputPixel place_of(const Tiling& tiling, int tile) {
  const int rest = tiling.by_tiles_across.quotient(tile);
  const int across = tiling.by_tiles_across.remainder(tile, rest);
  const int n = tiling.by_tiles_down.quotient(rest);
  const int down = tiling.by_tiles_down.remainder(rest, n);
  return {n, down * tiling.rows, across * tiling.across * 16};
}

/// The least number from `floats` on that is `bank` modulo `banks`.
inline std::int64_t at_bank(std::int64_t floats, std::int64_t bank, int banks) {
  return floats + ((bank - floats) % banks + banks) % banks;
}

/// Bytes of shared memory of a tiling with tiles of rows x 16 * across pixels; the patch's sizes
/// are filled in unless the bytes are more than `limit`.
inline std::int64_t lay_out(const Conv2dProblem& conv, std::int64_t limit, Tiling* tiling) {
  const std::int64_t extent_w = window_extent(conv.S, conv.dilation.w);
  const std::int64_t in_rows =
      (tiling->rows - 1) * std::int64_t{tiling->stride.h} + window_extent(conv.R, conv.dilation.h);
  const std::int64_t in_columns =
      ceil_div<std::int64_t>(
          tiling->shift + (std::int64_t{tiling->across} * 16 - 1) * tiling->stride.w + extent_w,
          tiling->width) *
      tiling->width;
  const std::int64_t fixed = tiling->patch_at(0) * std::int64_t{sizeof(float)};
  const auto cut = [](std::int64_t floats) { return std::min(floats, std::int64_t{1} << 18); };
  const std::int64_t least = fixed + 2 * tiling->channels * cut(cut(in_rows) * cut(in_columns)) *
                                         std::int64_t{sizeof(float)};
  if (least > limit) return least;
  // A row of the window should go on in the banks after those of the row before, which the eight
  // pixels 0 1 4 5 8 9 12 13 use. With stride 2, these repeat every 8 banks.
  const int banks = tiling->stride.w == 2 ? 8 : 32;
  const std::int64_t behind =
      ceil_div<std::int64_t>(extent_w + 13 * std::int64_t{tiling->stride.w}, tiling->width);
  const std::int64_t pitch = at_bank(in_columns, behind * tiling->width, banks);
  const std::int64_t plane =
      at_bank(in_rows * pitch, ((conv.R - 1) * std::int64_t{conv.dilation.h} + 1) * pitch, banks);
  tiling->in_rows = static_cast<int>(in_rows);
  tiling->in_columns = static_cast<int>(in_columns);
  tiling->pitch = static_cast<int>(pitch);
  tiling->plane = static_cast<int>(plane);
  return fixed + 2 * tiling->channels * plane * std::int64_t{sizeof(float)};
}

/// Bytes of the weights of 16 * filter_tiles filters.
inline std::int64_t weight_bytes(const Conv2dProblem& conv, int filter_tiles) {
  const std::int64_t depth = std::int64_t{conv.C / conv.groups} * conv.R * conv.S;
  return ceil_div<std::int64_t>(depth, 8) * 8 * 16 * filter_tiles * std::int64_t{sizeof(float)};
}

/// One group of pixels, one warp. The sums must be short enough for weight_bytes() to fit.
inline Tiling smallest_tiling(const Conv2dProblem& conv, int filter_tiles, int width) {
  Tiling tiling{};
  tiling.filter_tiles = filter_tiles;
  tiling.rows = tiling.across = tiling.warps = 1;
  tiling.width = width;
  tiling.shift = (width - conv.pad.left % width) % width;
  tiling.channels = conv.C / conv.groups;
  tiling.filters = conv.K / conv.groups;
  tiling.depth = tiling.channels * conv.R * conv.S;
  tiling.steps = ceil_div(tiling.depth, 8);
  tiling.stride = {conv.P == 1 ? 1 : conv.stride.h, conv.Q == 1 ? 1 : conv.stride.w};
  return tiling;
}

/// The tiling of shape S that should take the least time, with at most `limit` bytes.
template <class S>
std::optional<Tiling> tile_with(const Conv2dProblem& conv, int width, bool direct,
                                std::int64_t limit) {
  if (weight_bytes(conv, S::kFilterTiles) > limit) return {};
  Tiling base = smallest_tiling(conv, S::kFilterTiles, width);
  base.draft_floats = direct ? 0 : 8 * S::kDraftPitch;
  const int all_across = ceil_div(conv.Q, 16);
  const std::int64_t parts =
      std::int64_t{conv.groups} * ceil_div(base.filters, 16 * S::kFilterTiles);
  const int sms = multiprocessors();
  std::optional<Tiling> best;
  double best_cost = 0;
  for (int pieces = 1; pieces <= std::min(all_across, 64); ++pieces) {
    Tiling tiling = base;
    tiling.across = ceil_div(all_across, pieces);
    for (tiling.rows = 1; tiling.rows <= std::min(conv.P, kMaxRows); ++tiling.rows) {
      const int groups = tiling.rows * tiling.across;
      const int passes = ceil_div(groups, S::kWarps * S::kGroups);
      tiling.warps = ceil_div(groups, passes * S::kGroups);
      if (lay_out(conv, limit, &tiling) > limit) continue;
      tiling.tiles_down = ceil_div(conv.P, tiling.rows);
      tiling.tiles_across = ceil_div(all_across, tiling.across);
      // In instructions of warps; an mma counts as three.
      constexpr int kStep = 2 * (3 * S::kFilterTiles + 4) * S::kGroups + S::kFilterTiles + 6;
      constexpr int kPass = (12 * S::kFilterTiles + 40) * S::kGroups;
      const double work =
          double{1} * passes * std::max(tiling.warps, 6) * (base.steps * kStep + kPass) +
          double{1} * base.channels * tiling.in_rows *
              (40 + 16 * ceil_div(tiling.in_columns, 32 * width)) +
          200 * tiling.warps;
      const std::int64_t tiles =
          std::max(conv.N, 1) * parts * tiling.tiles_down * tiling.tiles_across;
      // Tiles one after the other on an SM, of which kBlocksPerSm share the time; and one more for
      // the first copies and the last stores.
      const double rounds =
          1.0 +
          static_cast<double>(kBlocksPerSm * ceil_div<std::int64_t>(tiles, kBlocksPerSm * sms));
      if (!best || work * rounds < best_cost) {
        best_cost = work * rounds;
        best = tiling;
      }
    }
  }
  if (best) {
    best->by_across = FastDivision(best->across);
    best->by_in_rows = FastDivision(best->in_rows);
    best->by_tiles_down = FastDivision(best->tiles_down);
    best->by_tiles_across = FastDivision(best->tiles_across);
  }
  return best;
}

/// Shared memory of a block, where an SM holds kBlocksPerSm; `most` is that of one alone.
inline std::int64_t shared_bytes_each(std::int64_t most) {
  return (most + 1024) / kBlocksPerSm - 1024;
}

/// Two blocks per SM if possible, else one; as many filters a block as possible.
inline std::optional<Tiling> choose(const Conv2dProblem& conv, int width, bool direct) {
  const std::int64_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int filters = conv.K / conv.groups;
  for (const std::int64_t limit : {shared_bytes_each(most), most}) {
    if (filters > 32) {
      if (const auto tiling = tile_with<FourFilterTiles>(conv, width, direct, limit)) return tiling;
    }
    if (filters > 16) {
      if (const auto tiling = tile_with<TwoFilterTiles>(conv, width, direct, limit)) return tiling;
    }
    if (const auto tiling = tile_with<OneFilterTile>(conv, width, direct, limit)) return tiling;
  }
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
