/// @file full_tiles.cu
/// @brief conv2d on Hopper in 16 bits, for many filters: nothing is multiplied in vain, and both
/// warpgroups share a patch.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** B10 multiplies 237 GFLOP, so much that what counts is not cycles: power is, and
/// the clock falls until the GPU keeps to its limit. Its time is what it does, useful or not. Of
/// the rung before's 208 columns 12 are nobody's, and every patch is brought 8 times, for 64
/// filters each. Here a tile is a strip of 8 columns by 28 rows, all of them somebody's. Of 28
/// columns 4 are left; *two images' remainders are a tile* (shared/halo/full_tiles.cuh). And a tile
/// has 128 filters: *both warpgroups multiply the same patch*, each with 64 filters of its own:
///
///     image n        8 | 8 | 8 | 4       7 tiles of 224 pixels, by 128 filters:
///     image n + 1    8 | 8 | 8 | 4       warpgroup 0: 0-63, warpgroup 1: 64-127
///
/// So weights come as often as before, patches half as often. While one warpgroup stores, the other
/// has taps enough before it, and the tensor cores for itself.
///
/// **Expect.** 6 % fewer products, and a third fewer bytes through the L2 cache. B10 at the rate of
/// the rung before: 290 us; with what the bytes took of the power, 280 to 285.
/// @expect on --n 2 --c 64 --h 16 --w 12 --k 128 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 18) + 3 + 18 = 59, wide tiles, and a narrow one
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** A narrow tile has three patches. Rows should be multiples of 28. Declined: 64 filters
/// or fewer, rows of which more than 4 columns are left, strides, and as before.
/// **Try.** Of 14 columns 6 are left. What would a tile of four images' remainders look like?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/full_tiles.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_stages.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, multiply each patch by a block of filters each. Patches: CopiedPatches or
/// GatheredPatches, Taps likewise.
/// Grid: <= work.items; block gemm::kWgmmaThreads; work.wide.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_full_tiles(const __grid_constant__ Patches wide,
                             const __grid_constant__ Patches narrow,
                             const __grid_constant__ Taps taps,
                             const __grid_constant__ FullWork work,
                             const __grid_constant__ PatchResult<T> wide_result,
                             const __grid_constant__ PatchResult<T> narrow_result) {
  __shared__ PatchBarriers barriers;
  PatchStages<kFullBlocks> stages(work.wide, barriers);
  stages.prepare<gemm::kWgmmaThreads>();

  const Windows& windows = work.wide.windows;
  const int chunks = windows.chunks(), lane = static_cast<int>(threadIdx.x) % 32;
  const auto tile_of = [&](unsigned item) { return work.tiles.at(item / work.wide.filter_tiles); };
  const auto filters_of = [&](unsigned item) {
    return filters_at(windows, item % work.wide.filter_tiles, kFullBlocks);
  };
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x) {
      const FullTile tile = tile_of(item);
      stages.bring(tile.is_narrow ? narrow : wide, taps, tile.at, filters_of(item), 0, chunks, true,
                   tile.is_narrow ? windows.S : 1);
    }
    return;
  }

  T* const draft = reinterpret_cast<T*>(stages.behind + consumer * work.wide.plan.draft_bytes);
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x) {
    const FullTile tile = tile_of(item);
    float sums[kFullColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    stages.template multiply<T, Taps>(work.tiles.of(tile.is_narrow), sums, 0, chunks, consumer,
                                      tile.is_narrow ? windows.S : 1);
    stages.finish();
    const PatchFilters filters = block_of(filters_of(item), consumer);
    if (filters.count <= 0) continue;
    (tile.is_narrow ? narrow_result : wide_result)
        .template store<kFullColumns>(work.tiles.of(tile.is_narrow), tile.at, filters, consumer,
                                      sums, draft);
  }
  wide_result.finish();  // waits for the stores by both
}

/// What there is to compute, with channels in words.
Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  return in_words(windows);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_no_full_tiles(windows_of(conv));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& wide, const Patches& narrow, const Taps& taps,
                    const FullWork& work, T* out, const float* bias) {
  const Windows& windows = work.wide.windows;
  launch(conv2d_hopper_full_tiles<T, Patches, Taps>,
         {dim3(blocks_for(work.items, 1, enough_blocks(multiprocessors()))),
          dim3(gemm::kWgmmaThreads), work.wide.plan.shared_bytes()},
         wide, narrow, taps, work, patch_result<T>(windows, work.tiles.wide, bias, out),
         patch_result<T>(windows, work.tiles.narrow, bias, out));
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    const int group_c = conv.C / conv.groups;
    T* const y = arrays.y;
    const FullWork work(windows, FullPlan(windows));
    if (in_eights(group_c) && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(copied_patches(work.wide, words_of(x)),
                     copied_patches(work.narrow, words_of(x)),
                     copied_taps(windows, words_of(weights)), work, y, arrays.bias);
    } else {
      launch_product(gathered_patches(work.wide, x, group_c),
                     gathered_patches(work.narrow, x, group_c),
                     GatheredTaps<T>{weights, conv.R, conv.S, group_c}, work, y, arrays.bias);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ", full_tiles_in_words(windows),
              in_eights(conv.C / conv.groups) ? ", by TMA" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_full_tiles = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
