/// @file full_tiles.cuh
/// @brief Tiles of pixels without padding columns, for hopper/full_tiles.cu here and in
/// ../conv2d_dgrad.
///
/// Images are cut into *wide* strips of 8 columns, as in halo_tile.cuh. What is left on the
/// right, up to 4 columns, is a *narrow* strip, and two images' narrow strips are a tile:
///
///     columns 8 ... 11 of images n and n + 1     a group of 8:  n: 8 9 10 11   n + 1: 8 9 10 11
///
/// The next tap across is not an address in such a patch: it has no room between the two. So each
/// column of taps has a patch of its own, no wider than the strip; taps down are addresses.
#pragma once

#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kFullColumns = 224;  ///< Of a tile: 28 rows of a strip.
inline constexpr int kNarrow = 4;         ///< Columns of a narrow strip, at most.
inline constexpr int kFullBlocks = 2;     ///< Of filters, in a tile: one a consumer.

/// A tile, and which kind it is.
struct FullTile {
  PatchTile at;    ///< its first image, row and column
  bool is_narrow;  ///< of two images
};

/// How images are cut.
struct FullTiles {
  PatchTiles wide,  ///< strips of 8 columns
      narrow;       ///< strips of what is left, of two images
  unsigned of_two;  ///< tiles of two images

  /// Tile `index` of all images: of two images all wide strips, then the narrow ones.
  HOST_DEVICE FullTile at(unsigned index) const {
    const auto down = static_cast<unsigned>(wide.down), across = static_cast<unsigned>(wide.across);
    const unsigned strip = index % of_two / down;
    const bool is_narrow = strip >= 2 * across;
    const unsigned image = is_narrow ? 0 : strip / across;
    const unsigned column = is_narrow ? across : strip % across;
    return {.at = {.n = static_cast<int>(index / of_two * 2 + image),
                   .p = static_cast<int>(index % down) * wide.rows,
                   .q = static_cast<int>(column) * 8},
            .is_narrow = is_narrow};
  }
  /// The tiles of a kind.
  HOST_DEVICE const PatchTiles& of(bool is_narrow) const { return is_narrow ? narrow : wide; }
  /// Tiles of N images.
  std::int64_t count(int N) const { return ceil_div(std::int64_t{N}, std::int64_t{2}) * of_two; }
};

/// The tiles of windows, with room for their patches; wide.rows is 0 where there is none.
struct FullPlan {
  PatchPlan plan;   ///< its tiles are the wide ones
  FullTiles tiles;  ///< of pixels

  /// Of the windows.
  explicit FullPlan(const Windows& windows) {
    PatchTiles wide = strips_of(windows, kFullColumns);
    wide.across = windows.Q / 8;
    plan = plan_with(windows, wide, kFullBlocks, kFullColumns * kPixelBytes);
    plan.stay = false;
    const bool has_narrow = windows.Q % 8 != 0;
    tiles = {.wide = plan.tiles,
             .narrow = plan.tiles,
             .of_two = static_cast<unsigned>(wide.down * (2 * wide.across + (has_narrow ? 1 : 0)))};
    tiles.narrow.kind = PatchKind::images;
    tiles.narrow.images = 2;
    tiles.narrow.width = windows.Q % 8;
    tiles.narrow.row = kNarrow;
    tiles.narrow.group = 2 * kNarrow;
    tiles.narrow.across = 1;
  }
};

/// What there is to compute: PatchWork of both kinds of tiles.
struct FullWork {
  FullTiles tiles;         ///< of pixels
  PatchWork wide, narrow;  ///< `wide` says how a block's shared memory is used
  unsigned items;          ///< tiles of pixels by tiles of filters; filters change fastest

  /// Of the windows, by a plan for them.
  FullWork(const Windows& windows, const FullPlan& with)
      : tiles(with.tiles), wide(windows, with.plan), narrow(windows, with.plan),
        items(static_cast<unsigned>(with.tiles.count(windows.N)) * wide.filter_tiles) {
    narrow.plan.tiles = tiles.narrow;
  }
};

/// For a rung's choice: which strips there are.
inline std::string full_tiles_in_words(const Windows& windows) {
  const bool has_wide = windows.Q >= 8, has_narrow = windows.Q % 8 != 0;
  return text(has_wide ? "strips of an image" : "", has_wide && has_narrow ? " and " : "",
              has_narrow ? "strips of two" : "");
}

/// Why the windows are not computed in such tiles, if so.
inline Declined why_no_full_tiles(const Windows& windows) {
  if (windows.stride.h != 1 || windows.stride.w != 1)
    return "stride 1 only: tiles are strips, next to each other";
  if (windows.pixels() == 0) return {};
  if (windows.group_k() <= kPatchFilters)
    return text(how_many(windows.group_k(), "filter"),
                " a group: a patch is shared by two blocks of ", kPatchFilters);
  if (windows.Q % 8 > kNarrow)
    return text("beside strips of 8 columns, ", windows.Q % 8, " are left: at most ", kNarrow);
  const FullPlan full(windows);
  if (full.plan.patches == 0)
    return "the pixels of a tile's windows do not fit into a patch in shared memory";
  const std::int64_t items = full.tiles.count(windows.N) * filter_tiles_of(windows, kFullBlocks);
  if (items <= INT32_MAX) return {};
  return text(items, " tiles: at most ", INT32_MAX);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
