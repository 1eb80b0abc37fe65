/// @file halo_tile_tf32.cu
/// @brief conv2d on Hopper in TF32: patches of floats, and sums that leave as whole sectors.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A pixel's 128 bytes hold 32 floats now, so that 64 channels are two chunks of two
/// patches, and a tile of 64 filters has 18 taps' weights of 8 KB, 144 KB. They stay only if
/// nothing else needs room but two patches: the drafts of the sums have to go. In 16 bits they were
/// needed, for a thread has sums of a pixel's single filters, eight lanes those of eight
/// neighbours, and eight numbers of 16 bits are half a sector. *Eight floats are a whole one*:
///
///     sums [filter][pixel] of a warp     lane / 4: filter     lane % 4: two pixels
///     one store of all lanes             8 filters x 4 bytes of 4 pixels = 4 sectors of 32 bytes
///
/// So each thread stores its sums from registers, and shared memory holds factors alone.
/// TMA rounds both to TF32 on the way. With one tap, a tile is little more than its stores:
/// there, tiles have 128 filters by 128 pixels, in an order in which a lane's four sums of a pixel
/// are neighbours (shared/halo/filters_in_fours.cuh), and a store is 128 bytes of each of 4 pixels.
///
/// **Expect.** Twice the cycles of 16 bits for a tile, 8064, in which two patches of 38 KB are
/// brought: 10 bytes a cycle again. B4 18 us at the tensor cores' peak, 24 with begin and end; B9
/// 145 us at the peak, 98 of DRAM: 175 us. B5, B8 and B15 write 103, 51 and 1644 MB, and half of
/// the tiles bring their pixels half as often: 36, 26 and 480 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect requests.shared.async 2 * (2 + 18) = 40, two blocks: two patches, and 18 taps
/// @expect sectors_per_request.y.store 4, whole ones
/// @expect bytes_per_lane.y.store 4, a sum
/// **Costs.** As before. With more than 64 channels weights follow the tiles again. Sums by fours
/// want groups of multiples of 32 filters.
/// **Try.** What would a draft of half a tile, 32 filters at a time, cost and save here?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/filters_in_fours.cuh"
#include "cuda_optimized/conv2d/shared/halo/float_pixels.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, take turns at the tiles. kBlocks: of filters in a tile. Patches: CopiedPatches or
/// GatheredPatches, Taps likewise.
/// Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <int kBlocks, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_halo_tile_tf32(const __grid_constant__ Patches patches,
                                 const __grid_constant__ Taps taps,
                                 const __grid_constant__ PatchWork work, FloatPixels result) {
  // full: patch or tap has arrived; empty: all four warps of its consumer have read it;
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ std::uint64_t full_patch[kMaxPatches], empty_patch[kMaxPatches];
  __shared__ std::uint64_t full_tap[kMaxTapSlots], empty_tap[kMaxTapSlots];
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const PatchPlan& plan = work.plan;
  const PatchTiles& tiles = plan.tiles;
  char* tap_slots = dynamic_shared<char>();
  tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
  char* const patch_slots = tap_slots + plan.tap_slots * plan.tap_bytes();

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
  Ring patch{plan.patches}, tap{plan.tap_slots};
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      const PatchTile tile = tile_at(tiles, item / work.filter_tiles);
      const PatchFilters filters = filters_at(windows, item % work.filter_tiles, kBlocks);
      for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
        // Until the consumer has read what the slot held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty_patch[patch.slot], patch.round ^ 1);
        patches.load({.group = filters.group,
                      .chunk = chunk,
                      .w = tile.q + work.first.w,
                      .h = tile.p + work.first.h,
                      .n = tile.n},
                     patch_slots + patch.slot * plan.patch_bytes, &full_patch[patch.slot]);
        if (plan.stay && !is_first) continue;
        for (int r = 0; r < windows.R; ++r) {
          for (int s = 0; s < windows.S; ++s, tap.step()) {
            ptx::mbarrier_wait(&empty_tap[tap.slot], tap.round ^ 1);
            taps.load(filters, {r, s}, chunk, tap_slots + tap.slot * plan.tap_bytes(),
                      &full_tap[tap.slot]);
          }
        }
      }
    }
    return;
  }

  int turn = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++turn) {
    if (turn % gemm::kConsumers != consumer) {
      patch.skip(chunks);
      if (!plan.stay) tap.skip(chunks * taps_each);
      continue;
    }
    float sums[kBlocks][kColumns / 2];
#pragma unroll
    for (auto& block : sums) {
#pragma unroll
      for (float& sum : block) sum = 0.0f;
    }
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
          const std::uint64_t rows = ptx::wgmma_descriptor(tap_slots + tap.slot * plan.tap_bytes());
          // Descriptors count in units of 16 bytes.
          const std::uint64_t columns =
              first_columns + static_cast<std::uint64_t>(r * windows.dilation.h * tiles.line() +
                                                         s * windows.dilation.w) *
                                  (kPixelBytes / 16);
          ptx::wgmma_fence();
#pragma unroll
          for (int k = 0; k < gemm::kWgmmaStep; k += 8) {
#pragma unroll
            for (int i = 0; i < kBlocks; ++i)
              ptx::wgmma_m64k8_tf32<kColumns>(sums[i], rows + i * (kTapBytes / 16) + k / 4,
                                              columns + k / 4, true);
          }
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
    result.store<kColumns>(tiles, tile_at(tiles, item / work.filter_tiles),
                           filters_at(windows, item % work.filter_tiles, kBlocks), sums);
  }
}

/// What there is to compute.
Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  return windows;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32)
    return "rounds its factors to TF32, and the problem asks for fp32";
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (const Declined why = why_no_windows(conv)) return why;
  if (const Declined why = gemm::why_no_wgmma()) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  const Windows windows = windows_of(conv);
  return why_no_patches(windows, patch_plan(windows, 0));
}

template <int kBlocks, int kColumns, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const FloatPixels& result) {
  launch(conv2d_hopper_halo_tile_tf32<kBlocks, kColumns, Patches, Taps>,
         {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
          work.plan.shared_bytes()},
         patches, taps, work, result);
}

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv) { return conv.C / conv.groups % 4 == 0; }

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  const float *x = arrays.x, *weights = arrays.weights;
  float* const y = arrays.y;
  const PatchWork work(windows, patch_plan(windows, 0));
  const int group_c = conv.C / conv.groups;
  const FloatPixels result = {.out = y,
                              .bias = arrays.bias,
                              .activation = conv.activation,
                              .P = conv.P,
                              .Q = conv.Q,
                              .K = conv.K,
                              .fours = gemm::begin_at_16_bytes(y, y)};
  const bool copied =
      by_the_copy_engine(conv) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights);
  const bool tall = work.plan.filter_blocks == 2;
  const auto launch_tall = [&](const auto& patches, const auto& taps) {
    launch_product<2, kTallColumns>(patches, taps, work, result);
  };
  const auto launch_usual = [&](const auto& patches, const auto& taps) {
    with_columns<false>(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
      launch_product<1, kColumns>(patches, taps, work, result);
    });
  };
  if (copied && tall) {
    launch_tall(copied_patches(work, x), copied_fours(windows, weights));
  } else if (copied) {
    launch_usual(copied_patches(work, x), copied_taps(windows, weights));
  } else if (tall) {
    launch_tall(gathered_patches(work, x, group_c), GatheredFours{weights, group_c});
  } else {
    launch_usual(gathered_patches(work, x, group_c),
                 GatheredTaps<float>{weights, conv.R, conv.S, group_c});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(patch_plan_in_words(windows_of(conv), 0),
              by_the_copy_engine(conv) ? ", by TMA" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_halo_tile_tf32 = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
