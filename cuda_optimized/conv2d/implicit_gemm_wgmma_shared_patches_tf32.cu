/// @file implicit_gemm_wgmma_shared_patches_tf32.cu
/// @brief conv2d on Hopper in TF32: a patch of pixels serves two tiles of filters.
///
/// - Before: implicit_gemm_wgmma_patches_tf32.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The rung before has tiles of 64 filters, so that each pixel is brought as often as
/// the layer has 64s of them. B15 has 512: eight times 205 MB of pixels cross the L2 cache beside
/// the 1644 MB of sums. Its two consumers take turns, each with patches of its own. *Let both read
/// the same patch*, each with 64 filters of its own:
///
///     patch 0 | patch 1 | patch 2 ...        one ring; all eight warps give a patch back
///     tap 0 of filters 0 to 63 | tap 0 of filters 64 to 127 | tap 1 of ...   every second one is
///     mine
///
/// Half of the pixels' bytes are gone. So is the order of turns, and what it hid: both consumers
/// store at about the same time, and nobody multiplies meanwhile. Where memory is the limit, that
/// is for free.
///
/// **Expect.** B15 brings 822 MB of pixels instead of 1644, and writes 1644: 2.5 GB by the L2
/// cache's 5.9 TB/s are 420 us, 1.85 GB by DRAM's 4.2 are 440. With begin and end 480 us. B8 154 MB
/// instead of 257: 28 us instead of 36. Nothing for B4 and B9, which have one tile of filters.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 128 --r 1 --s 1 --layout nhwc --dtype tf32
/// @expect requests.shared.async 2 * (2 + 2 * 2) = 12, two blocks: two patches, two taps for each
/// @expect sectors_per_request.y.store 4, whole ones
/// @expect bytes_per_lane.y.store 4, a sum
/// **Costs.** In groups of 64 filters or fewer, one of the consumers multiplies for nobody. Each
/// has slots of its own for taps, so that weights stay for half as many.
/// **Try.** With 192 filters, what does the second consumer of every second tile do?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/float_pixels.cuh"
#include "cuda_optimized/conv2d/patch_plan.cuh"
#include "cuda_optimized/conv2d/patch_sources.cuh"
#include "cuda_optimized/conv2d/pixel_patch.cuh"
#include "cuda_optimized/conv2d/wgmma_windows.cuh"
#include "cuda_optimized/gemm/halves.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// The tiles of filters that share a patch: one for each warpgroup of consumers.
constexpr int kTogether = gemm::kConsumers;

/// A consumer's filters.
__device__ PatchFilters filters_of(const PatchWork& work, std::int64_t item, int consumer) {
  const int first = consumer * kPatchFilters;
  PatchFilters filters =
      filters_at(work.windows, static_cast<int>(item % work.filter_tiles), kTogether);
  filters.first += first;
  filters.count -= first;
  return filters;
}

/// Sums over windows: one warp, the producer, brings patches, and taps for each of the others, two
/// warpgroups of consumers, which read the same patch. Patches: CopiedPatches or GatheredPatches,
/// Taps likewise. Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    windows_in_patches(const __grid_constant__ Patches patches, const __grid_constant__ Taps taps,
                       const __grid_constant__ PatchWork work, FloatPixels result) {
  // full: patch or tap has arrived; empty: all four warps of a tap's consumer have read it, all
  // eight a patch.
  __shared__ std::uint64_t full_patch[kMaxPatches], empty_patch[kMaxPatches];
  __shared__ std::uint64_t full_tap[kMaxTapSlots], empty_tap[kMaxTapSlots];
  const PatchPlan& plan = work.plan;
  const PatchTiles& tiles = plan.tiles;
  char* tap_slots = dynamic_shared<char>();
  tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
  char* const patch_slots = tap_slots + plan.tap_slots * kTapBytes;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < plan.patches; ++i) {
      ptx::mbarrier_init(&full_patch[i], 1);
      ptx::mbarrier_init(&empty_patch[i], 4 * kTogether);
    }
    for (int i = 0; i < plan.tap_slots; ++i) {
      ptx::mbarrier_init(&full_tap[i], 1);
      ptx::mbarrier_init(&empty_tap[i], 4);
    }
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
    for (std::int64_t item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      const PatchTile tile = tile_at(tiles, item / work.filter_tiles);
      const int group = filters_of(work, item, 0).group;
      for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
        // Until the consumer has read what the slot held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty_patch[patch.slot], patch.round ^ 1);
        patches.load({.group = group,
                      .chunk = chunk,
                      .w = tile.q + work.first.w,
                      .h = tile.p + work.first.h,
                      .n = tile.n},
                     patch_slots + patch.slot * plan.patch_bytes, &full_patch[patch.slot]);
        if (plan.stay && !is_first) continue;
        for (int i = 0; i < taps_each * kTogether; ++i, tap.step()) {
          ptx::mbarrier_wait(&empty_tap[tap.slot], tap.round ^ 1);
          taps.load(filters_of(work, item, i % kTogether), i / kTogether, chunk,
                    tap_slots + tap.slot * kTapBytes, &full_tap[tap.slot]);
        }
      }
    }
    return;
  }

  tap.skip(consumer);  // every second tap is this consumer's
  for (std::int64_t item = blockIdx.x; item < work.items; item += gridDim.x) {
    float sums[kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
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
        for (int s = 0; s < windows.S; ++s, tap.skip(kTogether)) {
          // Weights that stay have come in round 0.
          ptx::mbarrier_wait(&full_tap[tap.slot], plan.stay ? 0 : tap.round);
          const std::uint64_t rows = ptx::wgmma_descriptor(tap_slots + tap.slot * kTapBytes);
          // Descriptors count in units of 16 bytes.
          const std::uint64_t columns =
              first_columns + static_cast<std::uint64_t>(r * windows.dilation.h * tiles.row +
                                                         s * windows.dilation.w) *
                                  (kPixelBytes / 16);
          ptx::wgmma_fence();
#pragma unroll
          for (int k = 0; k < gemm::kWgmmaStep; k += 8)
            ptx::wgmma_m64k8_tf32<kColumns>(sums, rows + k / 4, columns + k / 4, true);
          ptx::wgmma_commit_group();
          ptx::wgmma_wait_group<1>();  // all but this tap's products are done
          release();
          read_tap = plan.stay ? -1 : tap.slot;
          read_patch = r == windows.R - 1 && s == windows.S - 1 ? patch.slot : -1;
        }
      }
    }
    ptx::wgmma_wait_group<0>();
    release();
    result.store<kColumns>(tiles, tile_at(tiles, item / work.filter_tiles),
                           filters_of(work, item, consumer), sums);
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
  return why_no_patches(windows_of(conv), 0, kTogether);
}

template <class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const FloatPixels& result) {
  with_columns(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
    launch(windows_in_patches<kColumns, Patches, Taps>,
           {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
            work.plan.shared_bytes()},
           patches, taps, work, result);
  });
}

/// Whether the copy engine can bring the factors, if they begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv) { return conv.C / conv.groups % 4 == 0; }

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  const float *x = arrays.x, *weights = arrays.weights;
  const PatchWork work(windows, patch_plan(windows, 0, kTogether), kTogether);
  const FloatPixels result = {arrays.y, arrays.bias, conv.activation, conv.N,
                              conv.P,   conv.Q,      conv.K};
  if (by_the_copy_engine(conv) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights)) {
    launch_product(copied_patches(work, x), copied_taps(windows, weights), work, result);
  } else {
    const int group_c = conv.C / conv.groups;
    launch_product(gathered_patches(work, x, group_c),
                   GatheredTaps<float>{weights, conv.R * conv.S, group_c}, work, result);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(patch_plan_in_words(windows_of(conv), 0, kTogether),
              by_the_copy_engine(conv) ? ", by the copy engine" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_wgmma_shared_patches_tf32 = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
