/// @file filter_stages.cuh
/// @brief The stages of 1 x 1 patches and the weights of all filters in a block's shared memory,
/// how the producer warp loads them, and how a consumer warpgroup multiplies them;
/// hopper/weight_stationary.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/halo/filters_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

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
      *patch_slots,          ///< behind them
      *drafts;               ///< of both consumers
  unsigned group,            ///< whose filters stay: of all items of this block
      tiles;                 ///< of filters in a group
  Ring patch;                ///< where this warp stands: at a tile's first patch

  /// Of this block.
  __device__ FilterStages(const PatchWork& of, FilterBarriers& with)
      : work(of), barriers(with), tap_slots(dynamic_shared<char>()),
        group(blockIdx.x % static_cast<unsigned>(of.windows.groups)),
        tiles(of.filter_tiles / static_cast<unsigned>(of.windows.groups)), patch{of.plan.patches} {
    tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
    patch_slots = tap_slots + of.plan.tap_slots * kTapBytes;
    drafts = patch_slots + of.plan.patches * of.plan.patch_bytes;
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

  /// The producer: brings a tile's patches, and, with the first tile, all weights.
  template <class Patches, class Taps>
  __device__ void bring(const Patches& patches, const Taps& taps, const PatchTile& tile,
                        bool is_first) {
    const int chunks = work.windows.chunks();
    for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
      // Until the consumers have read what the slot held a round ago; at once in round 0.
      ptx::mbarrier_wait(&barriers.empty_patch[patch.slot], patch.round ^ 1);
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

  /// A warpgroup: the sums of a tile of pixels and tile i of the filters.
  template <class T, class Taps, int kSums>
  __device__ void multiply(unsigned i, float (&sums)[kSums]) const {
    Ring at = patch;
    for (int chunk = 0; chunk < work.windows.chunks(); ++chunk, at.step()) {
      ptx::mbarrier_wait(&barriers.full_patch[at.slot], at.round);
      const std::uint64_t columns = ptx::wgmma_descriptor(
          patch_slots + at.slot * work.plan.patch_bytes, work.plan.tiles.group * kPixelBytes);
      ptx::wgmma_fence();
      Taps::Product::template multiply<2 * kSums, T>(sums, weights_at(i, chunk), columns);
      ptx::wgmma_commit_group();
    }
    ptx::wgmma_wait_group<0>();
  }
  /// A warp will not read the tile's patches any more, or not at all.
  __device__ void release() const {
    Ring at = patch;
    for (int chunk = 0; chunk < work.windows.chunks(); ++chunk, at.step()) {
      // An arrival must not come before those for what the slot held before.
      ptx::mbarrier_wait(&barriers.full_patch[at.slot], at.round);
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

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
