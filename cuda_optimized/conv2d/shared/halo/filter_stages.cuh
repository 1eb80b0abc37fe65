/// @file filter_stages.cuh
/// @brief The plan and the stages of hopper/weight_stationary.cu: patches of windows of one tap,
/// and the weights of all filters, which stay in a block's shared memory.
#pragma once

#include "core/cuda/cache_hints.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

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

/// The plan with the fewest columns in the largest share of an SM; without patches if
/// they do not fit beside all filters of a group. Its slots of taps hold [tile of filters][chunk].
inline PatchPlan filters_plan(const Windows& windows) {
  constexpr int kDeclared = 1024;  // bytes of barriers, and more
  PatchPlan best;
  std::int64_t least = 0;
  for (const PatchTiles& tiles : {strips_of(windows, 128), rows_of(windows, 128),
                                  strips_of(windows, 192), rows_of(windows, 192)}) {
    PatchPlan plan;
    plan.tiles = tiles;
    plan.patch_bytes = plan.staging_bytes = tiles.columns * kPixelBytes;
    plan.stay = true;
    const std::int64_t taps =
        std::int64_t{filter_tiles_of(windows, 1) / windows.groups} * windows.chunks();
    const std::int64_t room = static_cast<std::int64_t>(max_shared_bytes()) - kDeclared -
                              gemm::kAtom - gemm::kConsumers * plan.staging_bytes;
    const std::int64_t fit = (room - taps * kTapBytes) / plan.patch_bytes;
    // All of a tile's patches, and one of the next.
    if (tiles.rows == 0 || fit <= windows.chunks() || windows.chunks() >= kMaxTilePatches) continue;
    plan.tap_slots = static_cast<int>(taps);
    plan.patches = static_cast<int>(std::min<std::int64_t>(fit, kMaxTilePatches));
    const std::int64_t items = tiles.count(windows.N) * windows.groups;
    const std::int64_t columns_of_sm =
        ceil_div<std::int64_t>(items, multiprocessors()) * tiles.columns;
    if (best.patches > 0 && columns_of_sm >= least) continue;
    best = plan;
    least = columns_of_sm;
  }
  return best;
}

/// Why a block does not keep all filters, if so. @param windows as_a_matrix()
inline Declined why_not_all_filters(const Windows& windows) {
  if (windows.R * windows.S != 1)
    return "filters of one tap only: the weights of more are too many";
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

/// Of a block, in shared memory. full: a patch, or all weights, have arrived; empty: all warps of
/// both consumers have read it.
struct FilterBarriers {
  std::uint64_t full_patch[kMaxTilePatches],  ///< by slot
      empty_patch[kMaxTilePatches],           ///< likewise
      full_taps;                              ///< of all weights
};

/// The slots of patches, in which a warp stands somewhere, and the weights of a group's filters.
struct FilterStages {
  const PatchWork& work;     ///< with the plan
  FilterBarriers& barriers;  ///< of the slots
  char *tap_slots,           ///< in dynamic shared memory, at a multiple of gemm::kAtom
      *patch_slots,          ///< after them
      *staging;              ///< of both consumers
  unsigned group,            ///< whose filters stay: of all items of this block
      tiles;                 ///< of filters in a group
  Ring patch;                ///< the position of this warp: at a tile's first patch

  /// Of this block.
  __device__ FilterStages(const PatchWork& of, FilterBarriers& with)
      : work(of), barriers(with), tap_slots(dynamic_shared<char>()),
        group(blockIdx.x % static_cast<unsigned>(of.windows.groups)),
        tiles(of.filter_tiles / static_cast<unsigned>(of.windows.groups)), patch{of.plan.patches} {
    tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
    patch_slots = tap_slots + of.plan.tap_slots * kTapBytes;
    staging = patch_slots + of.plan.patches * of.plan.patch_bytes;
  }
  /// Initialises the barriers. By all threads of the block, with a barrier at the end.
  __device__ void prepare() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < work.plan.patches; ++i) {
        ptx::mbarrier_init(&barriers.full_patch[i], 1);
        ptx::mbarrier_init(&barriers.empty_patch[i], gemm::kConsumerThreads / 32);
      }
      ptx::mbarrier_init(&barriers.full_taps, work.plan.tap_slots);
      ptx::fence_mbarrier_init();
    }
    __syncthreads();  // separates the initialisation from all use of the barriers
  }
  /// Tiles of pixels, of all groups.
  __device__ unsigned items() const { return work.items / tiles; }
  /// The pixels of one of them.
  __device__ PatchTile tile_of(unsigned item) const {
    return tile_at(work.plan.tiles, item / static_cast<unsigned>(work.windows.groups));
  }
  /// The group's filters of tile i.
  __device__ PatchFilters filters_of(unsigned i) const {
    return filters_at(work.windows, group * tiles + i);
  }

  /// The producer: loads a tile's patches, and, with the first tile, all weights.
  template <class Patches, class Taps>
  __device__ void load(const Patches& patches, const Taps& taps, const PatchTile& tile,
                       bool is_first) {
    const int chunks = work.windows.chunks();
    for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
      // Waits until the consumers have read the slot's previous phase; in phase 0, at once.
      ptx::mbarrier_wait(&barriers.empty_patch[patch.slot], patch.phase ^ 1);
      patches.load({.group = static_cast<int>(group),
                    .chunk = chunk,
                    .w = tile.q + work.first.w,
                    .h = tile.p + work.first.h,
                    .n = tile.n},
                   patch_slots + patch.slot * work.plan.patch_bytes,
                   &barriers.full_patch[patch.slot]);
      for (unsigned i = 0; is_first && i < tiles; ++i)
        taps.load(filters_of(i), {0, 0}, chunk, weights_at(i, chunk), &barriers.full_taps);
    }
  }

  /// A warpgroup: the accumulators of a tile of pixels and tile i of the filters.
  template <class T, class Taps, int kSums>
  __device__ void multiply(unsigned i, float (&accumulators)[kSums]) const {
    Ring at = patch;
    for (int chunk = 0; chunk < work.windows.chunks(); ++chunk, at.step()) {
      ptx::mbarrier_wait(&barriers.full_patch[at.slot], at.phase);
      const std::uint64_t columns = ptx::wgmma_descriptor(
          patch_slots + at.slot * work.plan.patch_bytes, work.plan.tiles.group * kPixelBytes);
      ptx::wgmma_fence();
      multiply_tap<Taps::kTransposed, 2 * kSums, T>(accumulators, weights_at(i, chunk), columns);
      ptx::wgmma_commit_group();
    }
    ptx::wgmma_wait_group<0>();
  }
  /// A warp will not read the tile's patches any more, or not at all.
  __device__ void release() const {
    Ring at = patch;
    for (int chunk = 0; chunk < work.windows.chunks(); ++chunk, at.step()) {
      // An arrival must not come before those for what the slot held before.
      ptx::mbarrier_wait(&barriers.full_patch[at.slot], at.phase);
      __syncwarp();  // else a lane might still wait for a phase that is long over
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&barriers.empty_patch[at.slot]);
    }
  }
  /// To the next tile's patches.
  __device__ void step() { patch.skip(work.windows.chunks()); }

 private:
  __device__ char* weights_at(unsigned i, int chunk) const {
    return tap_slots + (static_cast<int>(i) * work.windows.chunks() + chunk) * kTapBytes;
  }
};

/// A source that may leave the L2 cache before other arrays: each pixel is read once.
struct PassingPatches : TmaPatches {
  bool passes;  ///< passes_the_cache()

  /// As TmaPatches::load(), but for the hint.
  __device__ void load(const PatchOrigin& from, char* patch, std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load_cache_hint<4>(
        patch, &source, full,
        {from.group * group_c + from.chunk * kTensorMapRow, from.w, from.n, from.h},
        ptx::createpolicy(passes));
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
