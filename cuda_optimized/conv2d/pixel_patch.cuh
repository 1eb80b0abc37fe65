/// @file pixel_patch.cuh
/// @brief Tiles of pixels whose windows lie in one patch of the source, for
/// implicit_gemm_wgmma_patches.cu here and in ../conv2d_dgrad.
///
/// A *patch* is a box of the source in shared memory, pixel after pixel. Column j of a tile is a
/// pixel of the output, and its window begins at the patch's pixel j / 8 * group + j % 8: `wgmma`
/// takes columns in groups of 8, as far apart as its descriptor says. There are two kinds of tiles:
///
///     strips   8 columns of an image by some rows; a group is a row of the strip, and groups are
///              a row of the patch apart, 8 pixels and what the filter reaches over
///     rows     whole rows of an image; groups of 8 follow one another through all of the patch
///
/// Between two rows of an image lie zeros, those of the padding on the right of the one and on the
/// left of the next: once, for both. A few columns of a tile of rows begin there, and are nobody's.
#pragma once

#include <algorithm>

#include "cuda_optimized/conv2d/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPatchFilters = 64;  ///< Of a tile: the rows of `wgmma`.
inline constexpr int kPixelBytes = 128;   ///< Of a pixel in a patch: 32 words of channels.

/// How an image is cut into tiles of pixels.
struct PatchTiles {
  int columns;     ///< of a tile, those that are nobody's included: N of `wgmma`
  int rows,        ///< of the output in a tile
      width;       ///< columns of the output in a tile
  int row,         ///< pixels of the patch from one of its rows to the next
      group;       ///< pixels of the patch from 8 columns to the next 8
  int patch_rows;  ///< rows of the patch
  int down,        ///< tiles down an image
      across;      ///< tiles across an image

  /// Columns of the tile from one row of the output to the next.
  HOST_DEVICE int row_columns() const { return group == 8 ? row : 8; }
  /// Bytes of the patch.
  HOST_DEVICE int bytes() const { return row * patch_rows * kPixelBytes; }
  /// Tiles of an image.
  HOST_DEVICE std::int64_t of_image() const { return std::int64_t{down} * across; }
};

/// A tile of pixels: its image, and its first row and column of the output.
struct PatchTile {
  int n,  ///< the image
      p,  ///< the first row
      q;  ///< the first column
};

/// Tile `index` of all images.
HOST_DEVICE inline PatchTile tile_at(const PatchTiles& tiles, std::int64_t index) {
  const std::int64_t strip = index / tiles.down;
  return {.n = static_cast<int>(strip / tiles.across),
          .p = static_cast<int>(index % tiles.down) * tiles.rows,
          .q = static_cast<int>(strip % tiles.across) * tiles.width};
}

/// A tile's filters.
struct PatchFilters {
  int first,  ///< the first one, of all K
      count,  ///< from that one to its group's end, perhaps more than a tile has, or none
      group;  ///< the group
};

/// Tile `index` of the filters of all groups. @param together tiles that are counted as one
HOST_DEVICE inline PatchFilters filters_at(const Windows& windows, int index, int together = 1) {
  const int filters = together * kPatchFilters;
  const int group_k = windows.group_k(), tiles = ceil_div(group_k, filters);
  const int group = index / tiles, inside = index % tiles * filters;
  return {.first = group * group_k + inside, .count = group_k - inside, .group = group};
}

/// Strips of 8 columns.
inline PatchTiles strips_of(const Windows& windows, int columns) {
  const int row = static_cast<int>(
      std::min<std::int64_t>(8 + (windows.S - 1) * std::int64_t{windows.dilation.w}, INT32_MAX));
  const int rows = columns / 8;
  return {.columns = columns,
          .rows = rows,
          .width = 8,
          .row = row,
          .group = row,
          .patch_rows = rows,
          .down = ceil_div(windows.P, rows),
          .across = ceil_div(windows.Q, 8)};
}

/// Whole rows; no row at all where one does not fit.
inline PatchTiles rows_of(const Windows& windows, int columns) {
  // All that a row of windows touches; or less, if what would lie behind the end of a row of the
  // patch is padding, and so is what lies there instead: the beginning of the next row. At least
  // eight, so that a group of columns crosses one end of a row at most.
  const std::int64_t touched = windows.Q + (windows.S - 1) * std::int64_t{windows.dilation.w};
  const std::int64_t shared = std::max({std::int64_t{windows.W} - windows.first.w,
                                        touched + windows.first.w, std::int64_t{windows.Q}});
  const std::int64_t row = std::max<std::int64_t>(std::min(touched, shared), 8);
  const int rows = static_cast<int>(std::min<std::int64_t>(columns / row, windows.P));
  return {.columns = columns,
          .rows = rows,
          .width = windows.Q,
          .row = static_cast<int>(std::min<std::int64_t>(row, INT32_MAX)),
          .group = 8,
          .patch_rows = rows,
          .down = rows == 0 ? 0 : ceil_div(windows.P, rows),
          .across = 1};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
