/// @file halo_stages.cuh
/// @brief The stages of halo tiles and weights in a block's shared memory, how the producer warp
/// loads them, and how a consumer warpgroup multiplies them; implicit_gemm/halo_tile.cu explains
/// it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Of a block's slots, in shared memory. full: patch or tap has arrived; empty: all four warps of
/// each warpgroup that reads it have done so.
struct PatchBarriers {
  std::uint64_t full_patch[kMaxPatches],  ///< by slot
      empty_patch[kMaxPatches],           ///< likewise
      full_tap[kMaxTapSlots],             ///< likewise
      empty_tap[kMaxTapSlots];            ///< likewise
};

/// The slots, and where a warp stands in their rings.
/// @tparam kBlocks of filters in a tile, each of a warpgroup of its own; all read the same patches
template <int kBlocks = 1>
struct PatchStages {
  static constexpr int kSlotBytes = kBlocks * kTapBytes;  ///< Of a tap.
  const PatchWork& work;                                  ///< with the plan
  PatchBarriers& barriers;                                ///< of the slots
  char *tap_slots,      ///< in dynamic shared memory, at a multiple of gemm::kAtom
      *patch_slots,     ///< behind them
      *behind;          ///< behind the patches: the rest of what the plan asks for
  Ring patch, tap;      ///< where this warp stands
  int read_patch = -1,  ///< a slot that is read once the last products are done; -1: none
      read_tap = -1;    ///< likewise

  /// Of this block.
  __device__ PatchStages(const PatchWork& of, PatchBarriers& with)
      : work(of), barriers(with), tap_slots(dynamic_shared<char>()), patch{of.plan.patches},
        tap{of.plan.tap_slots} {
    tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
    patch_slots = tap_slots + of.plan.tap_slots * kSlotBytes;
    behind = patch_slots + of.plan.patches * of.plan.patch_bytes;
  }
  /// Initialises the barriers, and writes zeros behind the boxes, where the last taps of a tile of
  /// rows end: no box overwrites them. By all kThreads of the block, with a barrier at the end.
  template <int kThreads>
  __device__ void prepare() const {
    const PatchPlan& plan = work.plan;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread == 0) {
      for (int i = 0; i < plan.patches; ++i) {
        ptx::mbarrier_init(&barriers.full_patch[i], 1);
        ptx::mbarrier_init(&barriers.empty_patch[i], 4 * kBlocks);
      }
      for (int i = 0; i < plan.tap_slots; ++i) {
        ptx::mbarrier_init(&barriers.full_tap[i], kBlocks);
        ptx::mbarrier_init(&barriers.empty_tap[i], 4 * kBlocks);
      }
      ptx::fence_mbarrier_init();
    }
    const int zeros = (plan.patch_bytes - plan.tiles.bytes()) / 16;
    for (int i = thread; i < plan.patches * zeros; i += kThreads) {
      char* const at = patch_slots + i / zeros * plan.patch_bytes;
      *reinterpret_cast<uint4*>(at + plan.tiles.bytes() + i % zeros * 16) = {};
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncthreads();           // separates both from all that follows
  }

  /// The producer: brings a tile's patches, each with its taps, of the chunks first ... last - 1.
  /// @param with_taps false: the weights have stayed
  /// @param parts 1; or windows.S: the tile has a patch for each column of taps
  template <class Patches, class Taps>
  __device__ void bring(const Patches& patches, const Taps& taps, const PatchTile& tile,
                        const PatchFilters& filters, int first, int last, bool with_taps = true,
                        int parts = 1) {
    const Windows& windows = work.windows;
    const PatchPlan& plan = work.plan;
    const int columns = parts == 1 ? windows.S : 1;
    for (int chunk = first; chunk < last; ++chunk) {
      for (int part = 0; part < parts; ++part, patch.step()) {
        // Until what the slot held a round ago has been read; at once in round 0.
        ptx::mbarrier_wait(&barriers.empty_patch[patch.slot], patch.round ^ 1);
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
            ptx::mbarrier_wait(&barriers.empty_tap[tap.slot], tap.round ^ 1);
#pragma unroll
            for (int block = 0; block < kBlocks; ++block) {
              taps.load(block_of(filters, block), {r, s}, chunk,
                        tap_slots + tap.slot * kSlotBytes + block * kTapBytes,
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

  /// A warpgroup: adds the products of the chunks first ... last - 1 to its sums. The last tap's
  /// are done after finish().
  /// @param block of the tile's filters, which are the warpgroup's
  /// @param parts as of bring()
  template <class T, class Taps, int kSums>
  __device__ void multiply(const PatchTiles& tiles, float (&sums)[kSums], int first, int last,
                           int block = 0, int parts = 1) {
    const Windows& windows = work.windows;
    const bool stay = work.plan.stay;
    const int columns = parts == 1 ? windows.S : 1;
    for (int chunk = first; chunk < last; ++chunk) {
      for (int part = 0; part < parts; ++part, patch.step()) {
        ptx::mbarrier_wait(&barriers.full_patch[patch.slot], patch.round);
        const std::uint64_t first_columns = ptx::wgmma_descriptor(
            patch_slots + patch.slot * work.plan.patch_bytes, tiles.group * kPixelBytes);
        for (int r = 0; r < windows.R; ++r) {
          for (int s = 0; s < columns; ++s, tap.step()) {
            // Weights that stay have come in round 0.
            ptx::mbarrier_wait(&barriers.full_tap[tap.slot], stay ? 0 : tap.round);
            // A tap is an address. Descriptors count in units of 16 bytes.
            const std::uint64_t at =
                first_columns + static_cast<std::uint64_t>(r * windows.dilation.h * tiles.line() +
                                                           s * windows.dilation.w) *
                                    (kPixelBytes / 16);
            ptx::wgmma_fence();
            Taps::Product::template multiply<2 * kSums, T>(
                sums, tap_slots + tap.slot * kSlotBytes + block * kTapBytes, at);
            ptx::wgmma_commit_group();
            ptx::wgmma_wait_group<1>();  // all but this tap's products are done
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
