/// @file pixel_patch.cuh
/// @brief Tiles of pixels whose windows lie in one patch of the source, for
/// implicit_gemm_wgmma_patches.cu here and in ../conv2d_dgrad.
///
/// A *patch* is a box of the source in shared memory, pixel after pixel. Column j of a tile is a
/// pixel of the output, and its window begins at the patch's pixel j / 8 * group + j % 8: `wgmma`
/// takes columns in groups of 8, as far apart as its descriptor says. There are three kinds of
/// tiles:
///
///     strips   8 columns of an image by some rows; a group is a row of the strip, and groups are
///              a row of the patch apart, 8 pixels and what the filter reaches over
///     rows     whole rows of an image; groups of 8 follow one another through all of the patch
///     images   whole images, likewise: the rows of one, then those of the next
///
/// Between two rows of an image lie zeros, those of the padding on the right of the one and on the
/// left of the next: once, for both. A few columns of a tile of rows begin there, and are nobody's.
/// So it is with images: the rows of zeros below the one are those above the next.
#pragma once

#include <algorithm>

#include "cuda_optimized/conv2d/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPatchFilters = 64;  ///< Of a block of a tile's filters: the rows of `wgmma`.
inline constexpr int kPixelBytes = 128;   ///< Of a pixel in a patch: 32 words of channels.

/// What a tile has of the images.
enum class PatchKind { strips, rows, images };

/// How images are cut into tiles of pixels.
struct PatchTiles {
  PatchKind kind;  ///< what a tile has
  int columns;     ///< of a tile, those that are nobody's included: N of `wgmma`
  int images,      ///< in a tile
      rows,        ///< from one image of a tile to the next; of one image, of the output in a tile
      width;       ///< columns of the output in a tile
  int row,         ///< pixels of the patch from one of its rows to the next
      group;       ///< pixels of the patch from 8 columns to the next 8
  int patch_rows;  ///< rows of the patch, of each image
  int down,        ///< tiles down an image
      across;      ///< tiles across an image

  /// Columns of the tile from one row of the output to the next.
  HOST_DEVICE int row_columns() const { return group == 8 ? row : 8; }
  /// Bytes of the patch.
  HOST_DEVICE int bytes() const { return row * patch_rows * images * kPixelBytes; }
  /// Tiles of N images.
  std::int64_t count(int N) const { return std::int64_t{ceil_div(N, images)} * down * across; }
};

/// A tile of pixels: its image, or the first one, and its first row and column of the output.
struct PatchTile {
  int n,  ///< the image
      p,  ///< the first row
      q;  ///< the first column
};

/// Tile `index` of all images.
HOST_DEVICE inline PatchTile tile_at(const PatchTiles& tiles, std::int64_t index) {
  const std::int64_t strip = index / tiles.down;
  return {.n = static_cast<int>(strip / tiles.across) * tiles.images,
          .p = static_cast<int>(index % tiles.down) * tiles.rows,
          .q = static_cast<int>(strip % tiles.across) * tiles.width};
}

/// A tile's filters.
struct PatchFilters {
  int first,  ///< the first one, of all K
      count,  ///< from that one to its group's end, perhaps more than a tile has
      group;  ///< the group
};

/// Tiles of the filters of all groups. @param blocks of filters in a tile
inline int filter_tiles_of(const Windows& windows, int blocks) {
  return windows.groups * ceil_div(windows.group_k(), kPatchFilters * blocks);
}

/// Tile `index` of them.
HOST_DEVICE inline PatchFilters filters_at(const Windows& windows, int index, int blocks = 1) {
  const int group_k = windows.group_k(), each = kPatchFilters * blocks;
  const int tiles = ceil_div(group_k, each);
  const int group = index / tiles, inside = index % tiles * each;
  return {.first = group * group_k + inside, .count = group_k - inside, .group = group};
}

/// Strips of 8 columns.
inline PatchTiles strips_of(const Windows& windows, int columns) {
  const int row = static_cast<int>(
      std::min<std::int64_t>(8 + (windows.S - 1) * std::int64_t{windows.dilation.w}, INT32_MAX));
  const int rows = columns / 8;
  return {.kind = PatchKind::strips,
          .columns = columns,
          .images = 1,
          .rows = rows,
          .width = 8,
          .row = row,
          .group = row,
          .patch_rows = rows,
          .down = ceil_div(windows.P, rows),
          .across = ceil_div(windows.Q, 8)};
}

/// From the beginning of a line of windows in a patch to that of the next one: of a row, in pixels;
/// of an image, in rows. All that the line's windows touch; or less, if what would lie behind its
/// end is padding, and so is what lies there instead: the beginning of the next line.
/// @param outputs windows in the line
/// @param taps of each, `dilation` apart
/// @param first where the first of them begins in the source, which ends at `size`
inline int line_of(int outputs, int taps, int dilation, int first, int size) {
  const std::int64_t touched = outputs + (taps - 1) * std::int64_t{dilation};
  const std::int64_t shared =
      std::max({std::int64_t{size} - first, touched + first, std::int64_t{outputs}});
  return static_cast<int>(std::min({touched, shared, std::int64_t{INT32_MAX}}));
}

/// Whole rows; no row at all where one does not fit.
inline PatchTiles rows_of(const Windows& windows, int columns) {
  // At least eight pixels, so that a group of columns crosses one end of a row at most.
  const int row =
      std::max(line_of(windows.Q, windows.S, windows.dilation.w, windows.first.w, windows.W), 8);
  const int rows = std::min(columns / row, windows.P);
  return {.kind = PatchKind::rows,
          .columns = columns,
          .images = 1,
          .rows = rows,
          .width = windows.Q,
          .row = row,
          .group = 8,
          .patch_rows = rows,
          .down = rows == 0 ? 0 : ceil_div(windows.P, rows),
          .across = 1};
}

/// Whole images; no row at all where none fits.
inline PatchTiles images_of(const Windows& windows, int columns) {
  PatchTiles tiles = rows_of(windows, columns);
  const int rows = line_of(windows.P, windows.R, windows.dilation.h, windows.first.h, windows.H);
  const std::int64_t fit = columns / (std::int64_t{rows} * tiles.row);
  tiles.kind = PatchKind::images;
  tiles.images = std::max(static_cast<int>(std::min<std::int64_t>(fit, windows.N)), 1);
  tiles.rows = tiles.patch_rows = fit == 0 ? 0 : rows;
  tiles.down = 1;
  return tiles;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
