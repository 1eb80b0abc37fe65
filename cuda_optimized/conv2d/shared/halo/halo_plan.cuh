/// @file halo_plan.cuh
/// @brief Halo tiles: which tiles of pixels the rungs with halo-tile reuse compute, and what a
/// block keeps in shared memory.
///
/// A *patch*, the halo tile of a tile of pixels, is a box of the source in shared memory, pixel
/// after pixel. Column j of a tile is a pixel of the output, and its window begins at the patch's
/// pixel j / 8 * group + j % 8: `wgmma` reads columns in groups of 8, as far apart as its
/// descriptor says. There are three kinds of tiles:
///
///     strips   8 columns of an image by some rows; a group is a row of the strip, and groups are
///              a row of the patch apart, 8 pixels and what the filter reaches over
///     rows     whole rows of an image; groups of 8 follow one another through all of the patch
///     images   whole images, likewise: the first row of each, then the second of each
///
/// Between two rows lie zeros, those of the padding on the right of the one and on the left of the
/// next: once, for both. A few columns of a tile of rows begin there: padding columns, whose
/// accumulators map to no pixel. Rows of zeros above and below images lie before all of a tile's
/// columns, and after.
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPatchFilters = 64;  ///< Of a block of a tile's filters: the rows of `wgmma`.
inline constexpr int kPixelBytes = 128;   ///< Of a pixel in a patch: 32 words of channels.

/// What a tile has of the images.
enum class PatchKind { strips, rows, images };

/// How images are cut into tiles of pixels.
struct PatchTiles {
  PatchKind kind;  ///< what a tile has
  int columns;     ///< of a tile, those that are padding columns included: N of `wgmma`
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
/// row's windows touch; or less, if the pixels after the end of the row are padding, and the
/// beginning of the next row, which is stored there instead, is padding, too. At least eight, so
/// that a group of columns crosses one end of a row at most.
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

inline constexpr int kMaxPatches = 6;     ///< In their ring in shared memory.
inline constexpr int kMaxTapSlots = 20;   ///< Taps' weights in theirs.
inline constexpr int kInFours = 32;       ///< Filters that a warp stores of a pixel, four a lane.
inline constexpr int kTallColumns = 128;  ///< Of tiles of two blocks of filters.
inline constexpr int kTapBytes = kPatchFilters * kPixelBytes;  ///< Of a tap's weights, a block.

/// How a block's shared memory is used, and in which tiles it computes.
struct PatchPlan {
  PatchTiles tiles = {};  ///< of pixels
  int filter_blocks = 1;  ///< of kPatchFilters, in a tile of filters
  int patch_bytes = 0;    ///< of a patch in its ring, with the zeros after the box
  int patches = 0,        ///< in their ring; 0: they do not fit
      tap_slots = 0;      ///< taps in theirs
  int staging_bytes = 0;  ///< of a consumer's staging buffer
  bool stay = false;  ///< all weights of a tile of filters are there, and stay from tile to tile

  /// Of a tap's slot.
  HOST_DEVICE int tap_bytes() const { return filter_blocks * kTapBytes; }
  /// Dynamic shared memory of a block: taps, patches, staging buffers, and room to align them.
  std::size_t shared_bytes() const {
    return static_cast<std::size_t>(tap_slots * tap_bytes() + patches * patch_bytes +
                                    staging_bytes * gemm::kConsumers + gemm::kAtom);
  }
};

/// A ring of slots in shared memory, as those who fill it and those who read it walk through it.
struct Ring {
  int slots;           ///< in the ring
  int slot = 0;        ///< the position of a warp
  unsigned phase = 0;  ///< of the slot's barriers, modulo 2

  /// To the next slot.
  __device__ void step() {
    if (++slot < slots) return;
    slot = 0;
    phase ^= 1;
  }
  /// Past `count` slots, which are somebody else's.
  __device__ void skip(int count) {
    phase ^= static_cast<unsigned>((slot + count) / slots) & 1;
    slot = (slot + count) % slots;
  }
};

/// Of a block's slots, in shared memory. full: a patch or a tap has arrived; empty: all four warps
/// of each warpgroup that reads it have done so.
struct PatchBarriers {
  std::uint64_t full_patch[kMaxPatches],  ///< by slot
      empty_patch[kMaxPatches],           ///< likewise
      full_tap[kMaxTapSlots],             ///< likewise
      empty_tap[kMaxTapSlots];            ///< likewise
};

/// Whole strides to where a window begins, rounded down.
inline Step strides_to(const Step& first, const Step& stride) {
  const auto down = [](int of, int by) { return of >= 0 ? of / by : -ceil_div(-of, by); };
  return {down(first.h, stride.h), down(first.w, stride.w)};
}

/// What there is to compute, and how.
struct PatchWork {
  PatchPlan plan;   ///< with the tiles of pixels
  Windows windows;  ///< with channels in words
  Step first,       ///< where the window (0, 0) begins, in strides from the first pixel not skipped
      skipped;      ///< pixels of the source before the first that begins a window
  unsigned filter_tiles,  ///< of all groups
      items;              ///< tiles of pixels by tiles of filters; filters change fastest

  /// Of the windows, by a plan for them.
  PatchWork(const Windows& of, const PatchPlan& with)
      : plan(with), windows(of), first(strides_to(of.first, of.stride)),
        skipped{of.first.h - first.h * of.stride.h, of.first.w - first.w * of.stride.w},
        filter_tiles(static_cast<unsigned>(filter_tiles_of(of, with.filter_blocks))),
        items(static_cast<unsigned>(with.tiles.count(of.N)) * filter_tiles) {}
  /// Whether some pixel of the source is not skipped, as TMA needs it.
  bool has_pixels() const { return skipped.h < windows.H && skipped.w < windows.W; }
  /// At most so many blocks run at the same time. Where weights stay, all items of a block are of
  /// the same filters.
  std::int64_t blocks() const {
    const std::int64_t most = enough_blocks(multiprocessors());
    return plan.stay ? most / filter_tiles * filter_tiles : most;
  }
};

/// Steps of 32 words and one tap each, of a sum.
inline int steps_of(const Windows& windows) { return windows.R * windows.S * windows.chunks(); }

/// Pixels of the patch from a window's first tap to its last one.
inline std::int64_t reach_of(const Windows& windows, int line) {
  return (windows.R - 1) * std::int64_t{windows.dilation.h} * line +
         (windows.S - 1) * std::int64_t{windows.dilation.w};
}

/// Those tiles with their patch, and what fits into shared memory beside it and the staging
/// buffers.
inline PatchPlan plan_with(const Windows& windows, const PatchTiles& tiles, int filter_blocks,
                           int staging_bytes) {
  constexpr int kDeclared = 1024;  // bytes of barriers, and more
  constexpr int kMaxBox = 256;     // of TMA, along each axis
  PatchPlan plan;
  plan.tiles = tiles;
  plan.filter_blocks = filter_blocks;
  plan.staging_bytes = staging_bytes;
  const std::int64_t patch_rows = tiles.rows + (windows.R - 1) * std::int64_t{windows.dilation.h};
  if (tiles.rows == 0 || tiles.row > kMaxBox || patch_rows > kMaxBox) return plan;
  plan.tiles.patch_rows = static_cast<int>(patch_rows);
  // The last column's last tap may lie after the box, in zeros that belong to no pixel.
  const std::int64_t pixels = std::max(
      patch_rows * tiles.row * tiles.images,
      (tiles.columns / 8 - 1) * std::int64_t{tiles.group} + 8 + reach_of(windows, tiles.line()));
  const std::int64_t bytes =
      ceil_div(pixels * kPixelBytes, std::int64_t{gemm::kAtom}) * gemm::kAtom;
  const std::int64_t room = static_cast<std::int64_t>(max_shared_bytes()) - kDeclared -
                            gemm::kAtom - std::int64_t{staging_bytes} * gemm::kConsumers;
  const int steps = steps_of(windows);
  const auto patches_beside = [&](int slots) {
    return static_cast<int>(std::min<std::int64_t>(
        (room - std::int64_t{slots} * plan.tap_bytes()) / bytes, kMaxPatches));
  };
  plan.stay = steps <= kMaxTapSlots && patches_beside(steps) >= 2 &&
              filter_tiles_of(windows, filter_blocks) <= enough_blocks(multiprocessors());
  plan.patches = plan.stay ? patches_beside(steps) : std::min(patches_beside(2), 2);
  if (plan.patches < 2) {
    plan.patches = 0;
    return plan;
  }
  plan.patch_bytes = static_cast<int>(bytes);
  plan.tap_slots = plan.stay ? steps
                             : static_cast<int>(std::min<std::int64_t>(
                                   (room - plan.patches * bytes) / plan.tap_bytes(), kMaxTapSlots));
  return plan;
}

/// The plan with the fewest columns in the largest share of an SM; without patches if
/// none fits.
/// @param staging_bytes of a column of accumulators, if a block rounds them in shared memory.
/// Without, there are no tiles of images: for a thread that stores its sums itself, another image
/// is work for each.
inline PatchPlan patch_plan(const Windows& windows, int staging_bytes) {
  PatchPlan best;
  std::int64_t least = 0;
  const auto consider = [&](const PatchTiles& tiles, int filter_blocks) {
    if (tiles.kind == PatchKind::images && staging_bytes == 0) return;
    const PatchPlan plan = plan_with(windows, tiles, filter_blocks, tiles.columns * staging_bytes);
    if (plan.patches == 0) return;
    const std::int64_t items = tiles.count(windows.N) * filter_tiles_of(windows, filter_blocks);
    const std::int64_t columns_of_sm =
        ceil_div<std::int64_t>(items, multiprocessors()) * tiles.columns;
    if (best.patches > 0 && columns_of_sm >= least) return;
    best = plan;
    least = columns_of_sm;
  };
  // With one tap, sums are short, and storing them is what takes time: by fours, in taller tiles.
  if (staging_bytes == 0 && windows.R * windows.S == 1 && windows.group_k() > kPatchFilters &&
      windows.group_k() % kInFours == 0) {
    for (const PatchTiles& tiles :
         {strips_of(windows, kTallColumns), rows_of(windows, kTallColumns)})
      consider(tiles, 2);
    if (best.patches > 0) return best;
  }
  for (const PatchTiles& tiles :
       {strips_of(windows, 224), rows_of(windows, 224), images_of(windows, 224),
        strips_of(windows, 208), rows_of(windows, 208), images_of(windows, 208),
        images_of(windows, 128)})
    consider(tiles, 1);
  return best;
}

/// Why the windows have no patches, if so. @param plan of theirs
inline Declined why_no_patches(const Windows& windows, const PatchPlan& plan) {
  const Step& stride = windows.stride;
  if ((stride.h != 1 || stride.w != 1) && windows.R * windows.S > 1) {
    return text("stride ", stride.h, " x ", stride.w,
                ", and more than one tap: with 1 alone are a ",
                "tap's pixels the first tap's, shifted");
  }
  if (windows.pixels() == 0) return {};
  if (plan.patches == 0)
    return "the pixels of a tile's windows do not fit into a patch in shared memory";
  const std::int64_t items =
      plan.tiles.count(windows.N) * filter_tiles_of(windows, plan.filter_blocks);
  if (items <= INT32_MAX) return {};
  return text(items, " tiles: at most ", INT32_MAX);
}

/// A number of columns that a kernel is compiled for.
template <int kColumns>
struct Columns {};

/// Calls `body` with the Columns of a plan. @tparam kImages it may have tiles of images
template <bool kImages, class Body>
void with_columns(int columns, const Body& body) {
  if (columns == 224) {
    body(Columns<224>{});
  } else if (!kImages || columns == 208) {
    body(Columns<208>{});
  } else if constexpr (kImages) {
    body(Columns<128>{});
  }
}

/// For a rung's choice: in which tiles they are computed.
inline std::string tiles_in_words(const PatchTiles& tiles) {
  const PatchKind kind = tiles.kind;
  return text(kind == PatchKind::images ? "images"
              : kind == PatchKind::rows ? "rows"
                                        : "strips",
              " in ", tiles.columns, " columns");
}
/// And how.
inline std::string patch_plan_in_words(const Windows& windows, int staging_bytes) {
  if (windows.pixels() == 0) return "nothing to do";
  const PatchPlan plan = patch_plan(windows, staging_bytes);
  return text(tiles_in_words(plan.tiles), plan.filter_blocks > 1 ? " by 128 filters" : "",
              plan.stay ? ", weights stay" : ", weights follow");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
