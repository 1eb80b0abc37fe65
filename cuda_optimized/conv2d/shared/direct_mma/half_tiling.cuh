/// @file half_tiling.cuh
/// @brief How direct/mma.cu cuts a problem: tiles of y, their patches of x, and shared
/// memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kHalfPatchRows = 32;    ///< of a tile of y, at most
inline constexpr int kHalfDraftWords = 128;  ///< of a warp's draft: 32 pixels of 8 filters

/// What a kernel computes: a warp has 8 * kTiles filters, and 16 * kFragments pixels at a time.
template <int kTileCount, int kFragmentCount, int kBlockCount>
struct HalfPatchShape {
  static constexpr int kTiles = kTileCount;          ///< of 8 filters: all of a block
  static constexpr int kFragments = kFragmentCount;  ///< of 16 pixels, two for each 32
  static constexpr int kWarps = 8;                   ///< of a block, at most
  static constexpr int kBlocks = kBlockCount;        ///< an SM: one computes, others load or store
};
using EightFilterEights = HalfPatchShape<8, 2, 2>;  ///< 64 filters.
using FourFilterEights = HalfPatchShape<4, 4, 2>;   ///< 32 filters.
using OneFilterEight = HalfPatchShape<1, 4, 3>;     ///< 8 filters.

/// How a problem is cut up, and how a block uses its shared memory, all in words of two elements:
///     weights [1 + odd][steps][tiles][64] | taps [1 + odd][steps][4][4] | biases [8 * tiles] |
///     drafts [warps][kHalfDraftWords] | two patches [channels][plane]
struct HalfPatchTiling {
  int tiles;         ///< of 8 filters, of a block
  int odd;           ///< 1: the stride is odd, so windows begin in even and odd columns alternately
  int rows, across;  ///< of a tile of y: rows, and pieces of 16 columns, or of 32 if odd
  int in_rows, in_columns;       ///< of its patch of x
  int width, shift;              ///< numbers of a copy; columns before the first one that is needed
  int pitch, plane;              ///< words from a row of the patch to the next, from a channel
  int channels, filters;         ///< of a group
  int row_pairs;                 ///< words that a row of a filter takes in the patch
  int pairs, steps;              ///< of all its rows; in steps of 8, the last one filled up
  int warps, blocks;             ///< of a block; of them an SM
  Step stride;                   ///< of the problem; down 1, across 2 where there is one output
  int tiles_down, tiles_across;  ///< of an image of y
  int draft_words;               ///< of a warp; 0: sums are stored directly
  FastDivision by_across, by_in_rows, by_tiles_down, by_tiles_across;  ///< divide by them
  FastDivision by_row_pairs, by_filter_rows;                           ///< the latter by R

  /// Columns of a piece.
  HOST_DEVICE int piece() const { return 16 << odd; }
  /// Fragments of a tile of y.
  HOST_DEVICE int fragments() const { return rows * across << odd; }
  /// Pixels of a tile of y.
  HOST_DEVICE int pixels() const { return 16 * fragments(); }
  /// The column of the patch where the windows of the first pixel of fragment f begin, 0 or 1 of 32
  /// pixels: 0 has the even ones, 1 the odd ones.
  HOST_DEVICE int first_column(int f) const { return shift + f * stride.w; }
  /// Words of the weights, which come first.
  HOST_DEVICE int weight_words() const { return (1 + odd) * steps * tiles * 64; }
  /// Where the taps' places begin.
  HOST_DEVICE int taps_at() const { return weight_words(); }
  /// Where the biases begin.
  HOST_DEVICE int biases_at() const { return taps_at() + (1 + odd) * steps * 16; }
  /// Where the first warp's draft begins.
  HOST_DEVICE int drafts_at() const { return biases_at() + 8 * tiles; }
  /// Where the patch `buffer`, 0 or 1, begins.
  HOST_DEVICE int patch_at(int buffer) const {
    return drafts_at() + warps * draft_words + buffer * channels * plane;
  }
  /// Words of all.
  HOST_DEVICE int words() const { return patch_at(2); }
};

/// Bytes of a block's shared memory, if it has so many words.
constexpr std::int64_t bytes_of_words(std::int64_t words) { return 4 * words; }

/// Whether neighbouring windows begin in even and in odd columns alternately.
inline bool odd_windows(const Conv2dProblem& conv) { return conv.Q > 1 && conv.stride.w % 2 != 0; }

/// Columns of a patch before the first one that is needed, with copies of `width` numbers.
inline int patch_shift(const Conv2dProblem& conv, int width) {
  return (width - conv.pad.left % width) % width;
}

/// Words that a row of a filter takes. Adjacent taps share words, the first of which may begin a
/// column before them; taps further apart have a word each.
inline std::int64_t row_pairs_of(const Conv2dProblem& conv, int width) {
  if (conv.dilation.w > 1) return conv.S;
  const int lead = odd_windows(conv) ? 1 : patch_shift(conv, width) % 2;
  return ceil_div<std::int64_t>(std::int64_t{conv.S} + lead, 2);
}

/// Bytes of the weights of 8 * tiles filters, and of their taps' places.
inline std::int64_t half_weight_bytes(const Conv2dProblem& conv, int tiles, int width) {
  const std::int64_t pairs =
      std::int64_t{conv.C / conv.groups} * conv.R * row_pairs_of(conv, width);
  const int sets = odd_windows(conv) ? 2 : 1;
  return bytes_of_words(ceil_div<std::int64_t>(pairs, 8) * (tiles * 64 + 16) * sets);
}

/// The least number from `words` on that has the bank `bank`.
inline std::int64_t words_to_bank(std::int64_t words, std::int64_t bank) {
  return words + ((bank - words) % 32 + 32) % 32;
}

/// Bytes of shared memory of a tiling with tiles of `rows` rows of `across` pieces; the patch's
/// sizes are filled in unless the bytes are more than `limit`.
inline std::int64_t lay_out(const Conv2dProblem& conv, std::int64_t limit,
                            HalfPatchTiling* tiling) {
  const std::int64_t extent_w = window_extent(conv.S, conv.dilation.w);
  const std::int64_t in_rows =
      (tiling->rows - 1) * std::int64_t{tiling->stride.h} + window_extent(conv.R, conv.dilation.h);
  const std::int64_t last = std::int64_t{tiling->across} * tiling->piece() - 1;  // column of y
  const int unit = std::max(tiling->width, 2);
  const std::int64_t in_columns =
      ceil_div<std::int64_t>(tiling->shift + last * tiling->stride.w + extent_w, unit) * unit;
  const std::int64_t fixed = tiling->patch_at(0);
  const auto cut = [](std::int64_t words) { return std::min(words, std::int64_t{1} << 18); };
  const std::int64_t least =
      bytes_of_words(fixed + 2 * tiling->channels * cut(cut(in_rows) * cut(in_columns / 2)));
  if (least > limit) return least;
  std::int64_t pitch = in_columns / 2, plane = in_rows * pitch;
  if (tiling->row_pairs % 4 != 0) {
    // A load of four pairs then goes on in the window's next row, which should lie in the banks
    // after those that the eight pixels, or the four of a piece, use of this one.
    const std::int64_t span = ceil_div<std::int64_t>(extent_w + 1, 2) +
                              (tiling->odd ? 7 : 3) * std::int64_t{2} * tiling->stride.w;
    pitch = words_to_bank(pitch, ceil_div<std::int64_t>(span, unit / 2) * (unit / 2));
    plane = words_to_bank(in_rows * pitch, window_extent(conv.R, conv.dilation.h) * pitch);
  }
  tiling->in_rows = static_cast<int>(in_rows);
  tiling->in_columns = static_cast<int>(in_columns);
  tiling->pitch = static_cast<int>(pitch);
  tiling->plane = static_cast<int>(plane);
  return bytes_of_words(fixed + 2 * tiling->channels * plane);
}

/// One piece, one warp. The filters must be small enough for half_weight_bytes() to fit.
/// @param draft whether sums pass through a draft
inline HalfPatchTiling smallest_half_tiling(const Conv2dProblem& conv, int tiles, int width,
                                            bool draft) {
  HalfPatchTiling tiling{};
  tiling.tiles = tiles;
  tiling.odd = odd_windows(conv) ? 1 : 0;
  tiling.rows = tiling.across = tiling.warps = 1;
  tiling.width = width;
  tiling.shift = patch_shift(conv, width);
  tiling.channels = conv.C / conv.groups;
  tiling.filters = conv.K / conv.groups;
  tiling.row_pairs = static_cast<int>(row_pairs_of(conv, width));
  tiling.pairs = tiling.channels * conv.R * tiling.row_pairs;
  tiling.steps = ceil_div(tiling.pairs, 8);
  tiling.stride = {conv.P == 1 ? 1 : conv.stride.h, conv.Q == 1 ? 2 : conv.stride.w};
  tiling.draft_words = draft ? kHalfDraftWords : 0;
  return tiling;
}

/// Shared memory of a block, where an SM holds so many.
inline std::int64_t half_patch_bytes(int blocks) {
  return (static_cast<std::int64_t>(max_shared_bytes()) + 1024) / blocks - 1024;
}

/// The tiling of shape S that should take the least time, if it has `blocks` an SM.
template <class S>
std::optional<HalfPatchTiling> half_tile_with(const Conv2dProblem& conv, int width, bool direct,
                                              int blocks) {
  const std::int64_t limit = half_patch_bytes(blocks);
  if (half_weight_bytes(conv, S::kTiles, width) > limit) return {};
  const HalfPatchTiling base = smallest_half_tiling(conv, S::kTiles, width, !direct);
  const int all_across = ceil_div(conv.Q, base.piece());
  const std::int64_t parts = std::int64_t{conv.groups} * ceil_div(base.filters, 8 * S::kTiles);
  const int sms = multiprocessors();
  std::optional<HalfPatchTiling> best;
  double best_cost = 0;
  for (int cuts = 1; cuts <= std::min(all_across, 64); ++cuts) {
    HalfPatchTiling tiling = base;
    tiling.across = ceil_div(all_across, cuts);
    for (tiling.rows = 1; tiling.rows <= std::min(conv.P, kHalfPatchRows); ++tiling.rows) {
      const int passes = ceil_div(tiling.fragments(), S::kWarps * S::kFragments);
      tiling.warps = ceil_div(tiling.fragments(), passes * S::kFragments);
      if (lay_out(conv, limit, &tiling) > limit) continue;
      tiling.tiles_down = ceil_div(conv.P, tiling.rows);
      tiling.tiles_across = ceil_div(all_across, tiling.across);
      // In instructions of warps; an mma counts as two, a load of 16 bytes as four.
      constexpr int kStep = (2 * S::kTiles + 8) * S::kFragments + 2 * S::kTiles + 10;
      constexpr int kPass = (8 * S::kTiles + 30) * S::kFragments;
      const double work =
          double{1} * passes * std::max(tiling.warps, 6) * (base.steps * kStep + kPass) +
          double{1} * base.channels * tiling.in_rows *
              (40 + 16 * ceil_div(tiling.in_columns, 32 * width)) +
          200 * tiling.warps;
      const std::int64_t tiles =
          std::int64_t{std::max(conv.N, 1)} * parts * tiling.tiles_down * tiling.tiles_across;
      // Tiles one after the other on an SM, whose blocks share the time; and one more for the
      // first copies and the last stores.
      const double rounds =
          1.0 +
          static_cast<double>(blocks * ceil_div<std::int64_t>(tiles, std::int64_t{blocks} * sms));
      if (!best || work * rounds < best_cost) {
        best_cost = work * rounds;
        best = tiling;
      }
    }
  }
  if (best) {
    best->blocks = blocks;
    best->by_across = FastDivision(best->across);
    best->by_in_rows = FastDivision(best->in_rows);
    best->by_tiles_down = FastDivision(best->tiles_down);
    best->by_tiles_across = FastDivision(best->tiles_across);
    best->by_row_pairs = FastDivision(best->row_pairs);
    best->by_filter_rows = FastDivision(conv.R);
  }
  return best;
}

/// As many blocks per SM as there should be, else one; as many filters a block as possible.
inline std::optional<HalfPatchTiling> choose_half_tiling(const Conv2dProblem& conv, int width,
                                                         bool direct) {
  const int filters = conv.K / conv.groups;
  std::optional<HalfPatchTiling> tiling;
  const auto try_shape = [&]<class S>(S, bool alone) {
    if (!tiling) tiling = half_tile_with<S>(conv, width, direct, alone ? 1 : S::kBlocks);
  };
  for (const bool alone : {false, true}) {
    if (filters > 32) try_shape(EightFilterEights{}, alone);
    if (filters > 8) try_shape(FourFilterEights{}, alone);
    try_shape(OneFilterEight{}, alone);
  }
  return tiling;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
