/// @file halo_tile.cuh
/// @brief Tiles of pixels whose windows lie in one patch of the source, for
/// implicit_gemm/halo_tile.cu here and in ../conv2d_dgrad.
///
/// A *patch* is a box of the source in shared memory, pixel after pixel. Column j of a tile is a
/// pixel of the output, and its window begins at the patch's pixel j / 8 * group + j % 8: `wgmma`
/// takes columns in groups of 8, as far apart as its descriptor says. There are three kinds of
/// tiles:
///
///     strips   8 columns of an image by some rows; a group is a row of the strip, and groups are
///              a row of the patch apart, 8 pixels and what the filter reaches over
///     rows     whole rows of an image; groups of 8 follow one another through all of the patch
///     images   whole images, likewise: the first row of each, then the second of each
///
/// Between two rows lie zeros, those of the padding on the right of the one and on the left of the
/// next: once, for both. A few columns of a tile of rows begin there, and are nobody's. Rows of
/// zeros above and below images lie before all of a tile's columns, and behind.
#pragma once

#include <algorithm>

#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"

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
      rows,        ///< of the output in a tile, of each image
      width;       ///< columns of the output in a tile
  int row,         ///< pixels of the patch from one of its rows to the next, be it another image's
      group;       ///< pixels of the patch from 8 columns to the next 8
  int patch_rows;  ///< rows of the patch, of each image
  int down,        ///< tiles down an image
      across;      ///< tiles across an image

  /// Columns of the tile from one row of the output to the next.
  HOST_DEVICE int row_columns() const { return group == 8 ? row : 8; }
  /// Pixels of the patch from a row of an image to that image's next one.
  HOST_DEVICE int line() const { return row * images; }
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
HOST_DEVICE inline PatchTile tile_at(const PatchTiles& tiles, unsigned index) {
  const auto down = static_cast<unsigned>(tiles.down), across = static_cast<unsigned>(tiles.across);
  const unsigned strip = index / down;
  return {.n = static_cast<int>(strip / across) * tiles.images,
          .p = static_cast<int>(index % down) * tiles.rows,
          .q = static_cast<int>(strip % across) * tiles.width};
}

/// A tile's filters.
struct PatchFilters {
  int first,  ///< the first one, of all K
      count,  ///< from that one to its group's end, perhaps more than a tile has
      group;  ///< the group
};

/// A tap of the windows.
struct Tap {
  int r,  ///< its row
      s;  ///< its column
};

/// Of a tile's filters, those from one block of kPatchFilters on; perhaps none.
HOST_DEVICE inline PatchFilters block_of(const PatchFilters& filters, int block) {
  return {.first = filters.first + block * kPatchFilters,
          .count = filters.count - block * kPatchFilters,
          .group = filters.group};
}

/// Tiles of the filters of all groups. @param blocks of filters in a tile
inline int filter_tiles_of(const Windows& windows, int blocks) {
  return windows.groups * ceil_div(windows.group_k(), kPatchFilters * blocks);
}

/// Tile `index` of them.
HOST_DEVICE inline PatchFilters filters_at(const Windows& windows, unsigned at, int blocks = 1) {
  const auto index = static_cast<int>(at);
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

/// Pixels from the beginning of a row of windows in a patch to that of the next one: all that the
/// row's windows touch; or less, if what would lie behind its end is padding, and so is what lies
/// there instead: the beginning of the next row. At least eight, so that a group of columns crosses
/// one end of a row at most.
inline int row_of(const Windows& windows) {
  const int first = windows.first.w;
  const std::int64_t touched = windows.Q + (windows.S - 1) * std::int64_t{windows.dilation.w};
  const std::int64_t shared =
      std::max({std::int64_t{windows.W} - first, touched + first, std::int64_t{windows.Q}});
  const std::int64_t row = std::max(std::min(touched, shared), std::int64_t{8});
  return static_cast<int>(std::min(row, std::int64_t{INT32_MAX}));
}

/// Whole rows; no row at all where one does not fit.
inline PatchTiles rows_of(const Windows& windows, int columns) {
  const int row = row_of(windows), rows = std::min(columns / row, windows.P);
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
  const std::int64_t fit = columns / (std::int64_t{windows.P} * tiles.row);
  tiles.kind = PatchKind::images;
  tiles.images = std::max(static_cast<int>(std::min<std::int64_t>(fit, windows.N)), 1);
  if (fit == 0) tiles.rows = tiles.patch_rows = 0;
  tiles.down = 1;
  return tiles;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
