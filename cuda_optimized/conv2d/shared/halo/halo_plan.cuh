/// @file halo_plan.cuh
/// @brief Which tiles implicit_gemm/halo_tile.cu takes, what a block keeps in shared memory,
/// and how it walks through that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/cuda/device_attribute.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kMaxPatches = 6;     ///< In their ring in shared memory.
inline constexpr int kMaxTapSlots = 20;   ///< Taps' weights in theirs.
inline constexpr int kInFours = 32;       ///< Filters that a warp stores of a pixel, four a lane.
inline constexpr int kTallColumns = 128;  ///< Of tiles of two blocks of filters.
inline constexpr int kTapBytes = kPatchFilters * kPixelBytes;  ///< Of a tap's weights, a block.

/// How a block's shared memory is used, and in which tiles it computes.
struct PatchPlan {
  PatchTiles tiles = {};  ///< of pixels
  int filter_blocks = 1;  ///< of kPatchFilters, in a tile of filters
  int patch_bytes = 0;    ///< of a patch in its ring, with the zeros behind the box
  int patches = 0,        ///< in their ring; 0: they do not fit
      tap_slots = 0;      ///< taps in theirs
  int draft_bytes = 0;    ///< of a consumer's draft of its sums
  bool stay = false;  ///< all weights of a tile of filters are there, and stay from tile to tile

  /// Of a tap's slot.
  HOST_DEVICE int tap_bytes() const { return filter_blocks * kTapBytes; }
  /// Dynamic shared memory of a block: taps, patches, drafts, and room to align them.
  std::size_t shared_bytes() const {
    return static_cast<std::size_t>(tap_slots * tap_bytes() + patches * patch_bytes +
                                    draft_bytes * gemm::kConsumers + gemm::kAtom);
  }
};

/// A ring of slots in shared memory, as those who fill it and those who read it walk through it.
struct Ring {
  int slots;           ///< in the ring
  int slot = 0;        ///< where one stands
  unsigned round = 0;  ///< of the ring, modulo 2

  /// To the next slot.
  __device__ void step() {
    if (++slot < slots) return;
    slot = 0;
    round ^= 1;
  }
  /// Past `count` slots, which are somebody else's.
  __device__ void skip(int count) {
    round ^= static_cast<unsigned>((slot + count) / slots) & 1;
    slot = (slot + count) % slots;
  }
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

/// Those tiles with their patch, and what fits into shared memory beside it and the drafts.
inline PatchPlan plan_with(const Windows& windows, const PatchTiles& tiles, int filter_blocks,
                           int draft_bytes) {
  constexpr int kDeclared = 1024;  // bytes of barriers, and more
  constexpr int kMaxBox = 256;     // of TMA, along each axis
  PatchPlan plan;
  plan.tiles = tiles;
  plan.filter_blocks = filter_blocks;
  plan.draft_bytes = draft_bytes;
  const std::int64_t patch_rows = tiles.rows + (windows.R - 1) * std::int64_t{windows.dilation.h};
  if (tiles.rows == 0 || tiles.row > kMaxBox || patch_rows > kMaxBox) return plan;
  plan.tiles.patch_rows = static_cast<int>(patch_rows);
  // The last column's last tap may lie behind the box, in zeros that belong to no pixel.
  const std::int64_t pixels = std::max(
      patch_rows * tiles.row * tiles.images,
      (tiles.columns / 8 - 1) * std::int64_t{tiles.group} + 8 + reach_of(windows, tiles.line()));
  const std::int64_t bytes =
      ceil_div(pixels * kPixelBytes, std::int64_t{gemm::kAtom}) * gemm::kAtom;
  const std::int64_t room = static_cast<std::int64_t>(max_shared_bytes()) - kDeclared -
                            gemm::kAtom - std::int64_t{draft_bytes} * gemm::kConsumers;
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

/// The plan with the fewest columns in the longest turn of a multiprocessor; without patches if
/// none fits.
/// @param draft_bytes of a column of sums, if a block rounds them in shared memory. Without, there
/// are no tiles of images: for a thread that stores its sums itself, another image is work for
/// each.
inline PatchPlan patch_plan(const Windows& windows, int draft_bytes) {
  PatchPlan best;
  std::int64_t least = 0;
  const auto consider = [&](const PatchTiles& tiles, int filter_blocks) {
    if (tiles.kind == PatchKind::images && draft_bytes == 0) return;
    const PatchPlan plan = plan_with(windows, tiles, filter_blocks, tiles.columns * draft_bytes);
    if (plan.patches == 0) return;
    const std::int64_t items = tiles.count(windows.N) * filter_tiles_of(windows, filter_blocks);
    const std::int64_t turn = ceil_div<std::int64_t>(items, multiprocessors()) * tiles.columns;
    if (best.patches > 0 && turn >= least) return;
    best = plan;
    least = turn;
  };
  // With one tap, sums are short, and storing them is what takes time: by fours, in taller tiles.
  if (draft_bytes == 0 && windows.R * windows.S == 1 && windows.group_k() > kPatchFilters &&
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
inline std::string patch_plan_in_words(const Windows& windows, int draft_bytes) {
  if (windows.pixels() == 0) return "nothing to do";
  const PatchPlan plan = patch_plan(windows, draft_bytes);
  return text(tiles_in_words(plan.tiles), plan.filter_blocks > 1 ? " by 128 filters" : "",
              plan.stay ? ", weights stay" : ", weights follow");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
