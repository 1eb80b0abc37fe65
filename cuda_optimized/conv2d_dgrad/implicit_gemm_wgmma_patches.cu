/// @file implicit_gemm_wgmma_patches.cu
/// @brief conv2d_dgrad on Hopper in 16 bits: a patch of dy is brought once, for all taps.
///
/// - Before: implicit_gemm_wgmma_16bit.cu
/// - After: implicit_gemm_wgmma_two_blocks.cu, implicit_gemm_wgmma_all_filters.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a forward pass over dy with the filter turned
/// around. So the patches of ../conv2d/implicit_gemm_wgmma_patches.cu serve here, too: the copy
/// engine brings the pixels of dy that a tile of dx depends on, once, and a tap is an address in
/// them. Channels of dx are the rows of `wgmma` now, and pixels its columns. The weights are read
/// as they lie, as before; they are the first factor here, for which the instruction has a bit
/// "transpose a":
///
///     weights [K][R*S][C]     tap t:  k0  |.. c0 c1 c2 ... c63 ..|       a of the product a dy,
///                                     k1  |.. c0 c1 c2 ... c63 ..|  ->   column-major: dx's
///                             R*S*C apart k2  ...                        channels down
///
/// Tap (r, s) of the windows is tap (R - 1 - r, S - 1 - s) of the filter. That is arithmetic on the
/// place of the box; the loop over taps does not know of it.
///
/// **Expect.** The forward pass's times, for the same products: B4 13 us, B6 14, B7 16, B9 85, B10
/// 310; B4, B6, B9 and B10 were 29, 19, 186 and 331.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch, weights of nine taps
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, the copy engine stores
/// **Costs.** Stride 1 only, and as there: few images of a few pixels fill no tile, and sums are
/// not cut into parts. Where channels are not in eights a warp gathers. Declined: other types,
/// nchw, filters that reach too far for shared memory.
/// **Try.** A stride of 2 has four classes of pixels, each a forward pass with some of the taps. Do
/// their patches share pixels of dy?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/half_windows.cuh"
#include "cuda_optimized/conv2d/patch_plan.cuh"
#include "cuda_optimized/conv2d/patch_result.cuh"
#include "cuda_optimized/conv2d/patch_sources.cuh"
#include "cuda_optimized/conv2d/pixel_patch.cuh"
#include "cuda_optimized/conv2d_dgrad/half_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/patch_taps.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::kHalfStep;
using conv2d::kMaxPatches;
using conv2d::kMaxTapSlots;
using conv2d::kPixelBytes;
using conv2d::kTapBytes;
using conv2d::PatchPlan;
using conv2d::PatchResult;
using conv2d::PatchTile;
using conv2d::PatchTiles;
using conv2d::PatchWork;

/// `wgmma` m64nNk16 of this type, with a column-major a.
template <int kN, class T>
__device__ void wgmma_down_a(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, false, true>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, false, true>(d, a, b, true);
  }
}

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, take turns at the tiles. Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    windows_in_patches(const __grid_constant__ Patches patches, const __grid_constant__ Taps taps,
                       const __grid_constant__ PatchWork work,
                       const __grid_constant__ PatchResult<T> result) {
  // full: patch or tap has arrived; empty: all four warps of its consumer have read it;
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ std::uint64_t full_patch[kMaxPatches], empty_patch[kMaxPatches];
  __shared__ std::uint64_t full_tap[kMaxTapSlots], empty_tap[kMaxTapSlots];
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const PatchPlan& plan = work.plan;
  const PatchTiles& tiles = plan.tiles;
  char* tap_slots = dynamic_shared<char>();
  tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
  char* const patch_slots = tap_slots + plan.tap_slots * kTapBytes;
  char* const drafts = patch_slots + plan.patches * plan.patch_bytes;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < plan.patches; ++i) {
      ptx::mbarrier_init(&full_patch[i], 1);
      ptx::mbarrier_init(&empty_patch[i], 4);
    }
    for (int i = 0; i < plan.tap_slots; ++i) {
      ptx::mbarrier_init(&full_tap[i], 1);
      ptx::mbarrier_init(&empty_tap[i], 4);
    }
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
    ptx::fence_mbarrier_init();
  }
  // Behind the box, where the last taps of a tile of rows end: zeros, which no box overwrites.
  const int behind = (plan.patch_bytes - tiles.bytes()) / 16;
  for (int i = thread; i < plan.patches * behind; i += gemm::kWgmmaThreads) {
    char* const patch = patch_slots + i / behind * plan.patch_bytes;
    *reinterpret_cast<uint4*>(patch + tiles.bytes() + i % behind * 16) = {};
  }
  ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
  __syncthreads();           // separates both from all that follows

  const Windows& windows = work.windows;
  const int chunks = windows.chunks(), taps_each = windows.R * windows.S;
  conv2d::Ring patch{plan.patches}, tap{plan.tap_slots};
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      const PatchTile tile = conv2d::tile_at(tiles, item / work.filter_tiles);
      const PatchFilters columns = conv2d::filters_at(windows, item % work.filter_tiles);
      for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
        // Until the consumer has read what the slot held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty_patch[patch.slot], patch.round ^ 1);
        patches.load({.group = columns.group,
                      .chunk = chunk,
                      .w = tile.q + work.first.w,
                      .h = tile.p + work.first.h,
                      .n = tile.n},
                     patch_slots + patch.slot * plan.patch_bytes, &full_patch[patch.slot]);
        if (plan.stay && !is_first) continue;
        for (int i = 0; i < taps_each; ++i, tap.step()) {
          ptx::mbarrier_wait(&empty_tap[tap.slot], tap.round ^ 1);
          taps.load(columns, i, chunk, tap_slots + tap.slot * kTapBytes, &full_tap[tap.slot]);
        }
      }
    }
    return;
  }

  T* const draft = reinterpret_cast<T*>(drafts + consumer * plan.draft_bytes);
  int turn = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++turn) {
    if (turn % gemm::kConsumers != consumer) {
      patch.skip(chunks);
      if (!plan.stay) tap.skip(chunks * taps_each);
      continue;
    }
    float sums[kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    // Without it, a patch of the tile before, two rounds earlier, would look like this one's.
    if (turn > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (turn - 1) / 2 & 1);
    int read_patch = -1, read_tap = -1;  // slots that are read once the last products are done
    const auto release = [&] {
      if (lane != 0) return;
      if (read_patch >= 0) ptx::mbarrier_arrive(&empty_patch[read_patch]);
      if (read_tap >= 0) ptx::mbarrier_arrive(&empty_tap[read_tap]);
    };
    for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
      ptx::mbarrier_wait(&full_patch[patch.slot], patch.round);
      const std::uint64_t first_columns = ptx::wgmma_descriptor(
          patch_slots + patch.slot * plan.patch_bytes, tiles.group * kPixelBytes);
      for (int r = 0; r < windows.R; ++r) {
        for (int s = 0; s < windows.S; ++s, tap.step()) {
          // Weights that stay have come in round 0.
          ptx::mbarrier_wait(&full_tap[tap.slot], plan.stay ? 0 : tap.round);
          const std::uint64_t rows =
              ptx::wgmma_row_major_descriptor(tap_slots + tap.slot * kTapBytes, 0);
          // Descriptors count in units of 16 bytes.
          const std::uint64_t columns =
              first_columns + static_cast<std::uint64_t>(r * windows.dilation.h * tiles.line() +
                                                         s * windows.dilation.w) *
                                  (kPixelBytes / 16);
          ptx::wgmma_fence();
#pragma unroll
          for (int k = 0; k < kHalfStep; k += 16)
            wgmma_down_a<kColumns, T>(sums, rows + k * kPixelBytes / 16, columns + k / 8);
          ptx::wgmma_commit_group();
          ptx::wgmma_wait_group<1>();  // all but this tap's products are done
          release();
          read_tap = plan.stay ? -1 : tap.slot;
          read_patch = r == windows.R - 1 && s == windows.S - 1 ? patch.slot : -1;
        }
      }
    }
    if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
    ptx::wgmma_wait_group<0>();
    release();
    result.template store<kColumns>(tiles, conv2d::tile_at(tiles, item / work.filter_tiles),
                                    conv2d::filters_at(windows, item % work.filter_tiles), consumer,
                                    sums, draft);
  }
  result.finish();
}

/// The forward pass over dy.
HalfClass forward_pass(const Conv2dProblem& conv) { return HalfClassesPlan(conv).classes.front(); }

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: else each class of pixels has patches of its own";
  const Windows windows = forward_pass(conv).windows;
  return conv2d::why_no_patches(windows, conv2d::patch_plan(windows, kPixelBytes));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  conv2d::with_columns<true>(work.plan.tiles.columns, [&]<int kColumns>(conv2d::Columns<kColumns>) {
    launch(windows_in_patches<T, kColumns, Patches, Taps>,
           {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
            work.plan.shared_bytes()},
           patches, taps, work, result);
  });
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const HalfClass part = forward_pass(conv);
  const Windows& windows = part.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *dy = arrays.dy, *weights = arrays.weights;
    const int group_k = conv.K / conv.groups, group_c = conv.C / conv.groups;
    const PatchWork work(windows, conv2d::patch_plan(windows, kPixelBytes));
    const PatchTiles& tiles = work.plan.tiles;
    const auto result = conv2d::patch_result<T>(windows, tiles, nullptr, arrays.dx);
    if (conv2d::in_eights(group_k) && conv2d::in_eights(group_c) &&
        gemm::begin_at_16_bytes(dy, weights)) {
      launch_product(conv2d::copied_patches(work, conv2d::words_of(dy)),
                     copied_class_taps(conv, part, weights), work, result);
    } else {
      launch_product(
          conv2d::gathered_patches(work, dy, group_k),
          GatheredClassTaps<T>{weights, part.taps, windows.S, conv.R * conv.S, group_k, group_c},
          work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::patch_plan_in_words(forward_pass(conv).windows, kPixelBytes),
              k_in_eights && c_in_eights ? ", by the copy engine" : ", by a warp",
              c_in_eights ? ", channels in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_wgmma_patches = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
