/// @file filters_plan.cuh
/// @brief Which tiles hopper/weight_stationary.cu takes, and what a block keeps in shared
/// memory.
#pragma once

#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kMaxTilePatches = 12;  ///< In their ring in shared memory.

/// The same windows as one image of rows of 8 pixels, where a window is its pixel: with one tap,
/// without stride and padding, pixels are a matrix, and a tile may have any of them.
inline Windows as_a_matrix(Windows windows) {
  const std::int64_t rows = windows.pixels() / 8;
  const bool are_pixels = windows.R * windows.S == 1 && windows.stride.h == 1 &&
                          windows.stride.w == 1 && windows.first.h == 0 && windows.first.w == 0 &&
                          windows.P == windows.H && windows.Q == windows.W;
  if (!are_pixels || windows.pixels() % 8 != 0 || rows > INT32_MAX) return windows;
  windows.N = 1;
  windows.P = windows.H = windows.out_H = static_cast<int>(rows);
  windows.Q = windows.W = windows.out_W = 8;
  return windows;
}

/// The plan with the fewest columns in the longest turn of a multiprocessor; without patches if
/// they do not fit beside all filters of a group. Its slots of taps hold [tile of filters][chunk].
inline PatchPlan filters_plan(const Windows& windows) {
  constexpr int kDeclared = 1024;  // bytes of barriers, and more
  PatchPlan best;
  std::int64_t least = 0;
  for (const PatchTiles& tiles : {strips_of(windows, 128), rows_of(windows, 128),
                                  strips_of(windows, 192), rows_of(windows, 192)}) {
    PatchPlan plan;
    plan.tiles = tiles;
    plan.patch_bytes = plan.draft_bytes = tiles.columns * kPixelBytes;
    plan.stay = true;
    const std::int64_t taps =
        std::int64_t{filter_tiles_of(windows, 1) / windows.groups} * windows.chunks();
    const std::int64_t room = static_cast<std::int64_t>(max_shared_bytes()) - kDeclared -
                              gemm::kAtom - gemm::kConsumers * plan.draft_bytes;
    const std::int64_t fit = (room - taps * kTapBytes) / plan.patch_bytes;
    // All of a tile's patches, and one of the next.
    if (tiles.rows == 0 || fit <= windows.chunks() || windows.chunks() >= kMaxTilePatches) continue;
    plan.tap_slots = static_cast<int>(taps);
    plan.patches = static_cast<int>(std::min<std::int64_t>(fit, kMaxTilePatches));
    const std::int64_t items = tiles.count(windows.N) * windows.groups;
    const std::int64_t turn = ceil_div<std::int64_t>(items, multiprocessors()) * tiles.columns;
    if (best.patches > 0 && turn >= least) continue;
    best = plan;
    least = turn;
  }
  return best;
}

/// Why a block does not keep all filters, if so. @param conv has the windows
inline Declined why_not_all_filters(const Conv2dProblem& conv, const Windows& windows) {
  if (conv.R * conv.S != 1) return "filters of one tap only: the weights of more are too many";
  if (windows.pixels() == 0) return {};
  const PatchPlan plan = filters_plan(windows);
  if (plan.patches > 0) return why_no_patches(windows, plan);
  return text("the weights of ", how_many(windows.group_k(), "filter"),
              " do not fit into shared memory, beside the pixels of a tile");
}

/// Calls `body` with the Columns of a plan.
template <class Body>
void with_filters_columns(int columns, const Body& body) {
  if (columns == 128) {
    body(Columns<128>{});
  } else {
    body(Columns<192>{});
  }
}

/// Blocks, so many for each group: all tiles of a block are of the same one.
inline unsigned filters_blocks(const PatchWork& work) {
  const std::int64_t tiles = work.plan.tiles.count(work.windows.N), groups = work.windows.groups;
  const std::int64_t most = std::max<std::int64_t>(enough_blocks(multiprocessors()) / groups, 1);
  return static_cast<unsigned>(std::min(tiles, most) * groups);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
