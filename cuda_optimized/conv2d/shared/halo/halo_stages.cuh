/// @file halo_stages.cuh
/// @brief The rings of patches and taps' weights in a block's shared memory, for the rungs that
/// refine implicit_gemm/halo_tile.cu, which has the same loops written out.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The slots, and a warp's position in their rings.
/// @tparam kReaders warpgroups that read each patch; each has filters of its own
/// @tparam kSlotBytes of a tap's weights, kReaders loads
template <int kReaders = 1, int kSlotBytes = kReaders* kTapBytes>
struct PatchStages {
  const PatchWork& work;    ///< with the plan
  PatchBarriers& barriers;  ///< of the slots
  char *tap_slots,          ///< in dynamic shared memory, at a multiple of gemm::kAtom
      *patch_slots,         ///< after them
      *behind;              ///< after the patches: the rest of the plan's shared memory
  Ring patch, tap;          ///< the position of this warp
  int read_patch = -1,      ///< a slot that is read once the last products are done; -1: none
      read_tap = -1;        ///< likewise

  /// Of this block.
  __device__ PatchStages(const PatchWork& of, PatchBarriers& with)
      : work(of), barriers(with), tap_slots(dynamic_shared<char>()), patch{of.plan.patches},
        tap{of.plan.tap_slots} {
    tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
    patch_slots = tap_slots + of.plan.tap_slots * kSlotBytes;
    behind = patch_slots + of.plan.patches * of.plan.patch_bytes;
  }
  /// Initialises the barriers and the zeros after the boxes. By all kThreads of the block, with a
  /// barrier at the end.
  template <int kThreads>
  __device__ void prepare() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < work.plan.patches; ++i) {
        ptx::mbarrier_init(&barriers.full_patch[i], 1);
        ptx::mbarrier_init(&barriers.empty_patch[i], 4 * kReaders);
      }
      for (int i = 0; i < work.plan.tap_slots; ++i) {
        ptx::mbarrier_init(&barriers.full_tap[i], kReaders);
        ptx::mbarrier_init(&barriers.empty_tap[i], 4 * kReaders);
      }
      ptx::fence_mbarrier_init();
    }
    zero_behind_boxes<kThreads>(work.plan, patch_slots);
    __syncthreads();  // separates both from all that follows
  }

  /// The producer: loads a tile's patches, each with its taps, of the chunks first ... last - 1.
  /// @param with_taps false: the weights have stayed
  /// @param parts 1; or windows.S: the tile has a patch for each column of taps
  template <class Patches, class Taps>
  __device__ void load(const Patches& patches, const Taps& taps, const PatchTile& tile,
                       const PatchFilters& filters, int first, int last, bool with_taps = true,
                       int parts = 1) {
    const Windows& windows = work.windows;
    const PatchPlan& plan = work.plan;
    const int columns = parts == 1 ? windows.S : 1;
    for (int chunk = first; chunk < last; ++chunk) {
      for (int part = 0; part < parts; ++part, patch.step()) {
        // Until what the slot held before has been read; at once in phase 0.
        ptx::mbarrier_wait(&barriers.empty_patch[patch.slot], patch.phase ^ 1);
        patches.load({.group = filters.group,
                      .chunk = chunk,
                      .w = tile.q + work.first.w + part * windows.dilation.w,
                      .h = tile.p + work.first.h,
                      .n = tile.n},
                     patch_slots + patch.slot * plan.patch_bytes, &barriers.full_patch[patch.slot]);
        if (!with_taps) continue;
        // Without divisions, which take a thread that is alone longer than a tap's products.
        for (int r = 0; r < windows.R; ++r) {
          for (int s = part; s < part + columns; ++s, tap.step()) {
            ptx::mbarrier_wait(&barriers.empty_tap[tap.slot], tap.phase ^ 1);
#pragma unroll
            for (int reader = 0; reader < kReaders; ++reader) {
              taps.load(block_of(filters, reader), {r, s}, chunk,
                        tap_slots + tap.slot * kSlotBytes + reader * kTapBytes,
                        &barriers.full_tap[tap.slot]);
            }
          }
        }
      }
    }
  }

  /// Past a tile's patches and taps, which are another warpgroup's.
  __device__ void skip() {
    const int chunks = work.windows.chunks();
    patch.skip(chunks);
    if (!work.plan.stay) tap.skip(chunks * work.windows.R * work.windows.S);
  }

  /// A warpgroup: calls multiply(weights, columns) for each tap of the chunks first ... last - 1.
  /// The last tap's products are done after finish().
  /// @param reader which of the warpgroups that read the patches
  /// @param parts as of load()
  template <class Multiply>
  __device__ void for_each_tap(const PatchTiles& tiles, int first, int last,
                               const Multiply& multiply, int reader = 0, int parts = 1) {
    const Windows& windows = work.windows;
    const bool stay = work.plan.stay;
    const int columns = parts == 1 ? windows.S : 1;
    for (int chunk = first; chunk < last; ++chunk) {
      for (int part = 0; part < parts; ++part, patch.step()) {
        ptx::mbarrier_wait(&barriers.full_patch[patch.slot], patch.phase);
        const std::uint64_t first_columns = ptx::wgmma_descriptor(
            patch_slots + patch.slot * work.plan.patch_bytes, tiles.group * kPixelBytes);
        for (int r = 0; r < windows.R; ++r) {
          for (int s = 0; s < columns; ++s, tap.step()) {
            // Weights that stay have come in phase 0.
            ptx::mbarrier_wait(&barriers.full_tap[tap.slot], stay ? 0 : tap.phase);
            ptx::wgmma_fence();
            multiply(tap_slots + tap.slot * kSlotBytes + reader * kTapBytes,
                     first_columns + tap_offset(windows, tiles, r, s));
            ptx::wgmma_commit_group();
            ptx::wgmma_wait_group<1>();  // all but this tap's wgmma are complete
            release();
            read_tap = stay ? -1 : tap.slot;
            read_patch = r == windows.R - 1 && s == columns - 1 ? patch.slot : -1;
          }
        }
      }
    }
  }
  /// Waits for all products.
  __device__ void finish() {
    ptx::wgmma_wait_group<0>();
    release();
    read_patch = read_tap = -1;
  }

 private:
  __device__ void release() const {
    if (threadIdx.x % 32 != 0) return;
    if (read_patch >= 0) ptx::mbarrier_arrive(&barriers.empty_patch[read_patch]);
    if (read_tap >= 0) ptx::mbarrier_arrive(&barriers.empty_tap[read_tap]);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
