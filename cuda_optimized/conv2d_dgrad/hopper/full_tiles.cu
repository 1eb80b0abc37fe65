/// @file full_tiles.cu
/// @brief conv2d_dgrad on Hopper in 16 bits, for many channels: nothing is multiplied in vain, and
/// both warpgroups share a patch.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** That of ../conv2d/implicit_gemm_wgmma_full_tiles.cu, with the patches of dy and
/// the weights as they lie of the rung before. Strips of 8 columns leave 4 of B10's 28, and two
/// images' remainders are a tile: no column is nobody's. Both warpgroups multiply the same patch,
/// each for 64 channels of dx:
///
///     image n        8 | 8 | 8 | 4       7 tiles of 224 pixels, by 128 channels of dx:
///     image n + 1    8 | 8 | 8 | 4       warpgroup 0: 0-63, warpgroup 1: 64-127
///
/// **Expect.** The forward pass's gain: B10 from 317 us to 290.
/// @expect on --n 2 --c 128 --h 16 --w 12 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 18) + 3 + 18 = 59, wide tiles, and a narrow one
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, TMA stores
/// **Costs.** As there. Declined: 64 channels of dx or fewer, rows of which more than 4 columns are
/// left, strides, and as before.
/// **Try.** The weights are read across. Would a kernel that turns them around first pay, if it has
/// to be there in 2 % of B10's time?
#include "core/conv2d_gradients.hpp"
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
#include "cuda_optimized/conv2d_dgrad/shared/half_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/halo_taps.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::FullTile;
using conv2d::FullWork;
using conv2d::PatchBarriers;
using conv2d::PatchResult;
using conv2d::PatchStages;

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, multiply each patch by a block of filters each. Patches: CopiedPatches or
/// GatheredPatches, Taps likewise.
/// Grid: <= work.items; block gemm::kWgmmaThreads; work.wide.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_dgrad_hopper_full_tiles(const __grid_constant__ Patches wide,
                                   const __grid_constant__ Patches narrow,
                                   const __grid_constant__ Taps taps,
                                   const __grid_constant__ FullWork work,
                                   const __grid_constant__ PatchResult<T> wide_result,
                                   const __grid_constant__ PatchResult<T> narrow_result) {
  __shared__ PatchBarriers barriers;
  PatchStages<conv2d::kFullBlocks> stages(work.wide, barriers);
  stages.prepare<gemm::kWgmmaThreads>();

  const Windows& windows = work.wide.windows;
  const int chunks = windows.chunks(), lane = static_cast<int>(threadIdx.x) % 32;
  const auto tile_of = [&](unsigned item) { return work.tiles.at(item / work.wide.filter_tiles); };
  const auto filters_of = [&](unsigned item) {
    return conv2d::filters_at(windows, item % work.wide.filter_tiles, conv2d::kFullBlocks);
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
    float sums[conv2d::kFullColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    stages.template multiply<T, Taps>(work.tiles.of(tile.is_narrow), sums, 0, chunks, consumer,
                                      tile.is_narrow ? windows.S : 1);
    stages.finish();
    const PatchFilters filters = conv2d::block_of(filters_of(item), consumer);
    if (filters.count <= 0) continue;
    (tile.is_narrow ? narrow_result : wide_result)
        .template store<conv2d::kFullColumns>(work.tiles.of(tile.is_narrow), tile.at, filters,
                                              consumer, sums, draft);
  }
  wide_result.finish();  // waits for the stores by both
}

/// The forward pass over dy.
HalfClass forward_pass(const Conv2dProblem& conv) { return HalfClassesPlan(conv).classes.front(); }

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: else each class of pixels has patches of its own";
  return conv2d::why_no_full_tiles(forward_pass(conv).windows);
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& wide, const Patches& narrow, const Taps& taps,
                    const FullWork& work, T* out) {
  const Windows& windows = work.wide.windows;
  launch(conv2d_dgrad_hopper_full_tiles<T, Patches, Taps>,
         {dim3(blocks_for(work.items, 1, enough_blocks(multiprocessors()))),
          dim3(gemm::kWgmmaThreads), work.wide.plan.shared_bytes()},
         wide, narrow, taps, work, conv2d::patch_result<T>(windows, work.tiles.wide, nullptr, out),
         conv2d::patch_result<T>(windows, work.tiles.narrow, nullptr, out));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const HalfClass part = forward_pass(conv);
  const Windows& windows = part.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *dy = arrays.dy, *weights = arrays.weights;
    const int group_k = conv.K / conv.groups, group_c = conv.C / conv.groups;
    T* const dx = arrays.dx;
    const FullWork work(windows, conv2d::FullPlan(windows));
    if (conv2d::in_eights(group_k) && conv2d::in_eights(group_c) &&
        gemm::begin_at_16_bytes(dy, weights)) {
      const auto copied = [&](const conv2d::PatchWork& of) {
        return conv2d::copied_patches(of, conv2d::words_of(dy));
      };
      launch_product(copied(work.wide), copied(work.narrow), copied_class_taps(conv, part, weights),
                     work, dx);
    } else {
      const auto gathered = [&](const conv2d::PatchWork& of) {
        return conv2d::gathered_patches(of, dy, group_k);
      };
      launch_product(gathered(work.wide), gathered(work.narrow),
                     GatheredClassTaps<T>{weights, part.taps, conv.R * conv.S, group_k, group_c},
                     work, dx);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  const Windows windows = forward_pass(conv).windows;
  if (windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ", conv2d::full_tiles_in_words(windows),
              k_in_eights && c_in_eights ? ", by TMA" : ", by a warp",
              c_in_eights ? ", channels in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_full_tiles = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
