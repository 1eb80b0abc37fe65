/// @file implicit_gemm_wgmma_two_blocks.cu
/// @brief conv2d_dgrad on Hopper in 16 bits: two blocks share the sums of a tile.
///
/// - Before: implicit_gemm_wgmma_patches.cu
/// - After: implicit_gemm_wgmma_block_pairs.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** That of ../conv2d/implicit_gemm_wgmma_two_blocks.cu: where tiles are few and sums
/// are long, two blocks take the same tile and half of dy's channels each, and exchange halves of
/// their sums through the L2 cache, with a barrier of the whole grid between:
///
///     block 0   dy's channels 0 to 255      columns   0 ... 111  +  what block 1 sends  ->  dx
///     block 1   dy's channels 256 to 511    columns 112 ... 223  +  what block 0 sends  ->  dx
///
/// Weights are the transposed first factor, as in the rung before. That `wgmma` reads them across
/// costs nothing here, either: shared memory has time while it multiplies 224 columns.
///
/// **Expect.** The forward pass's time, for the same products: B7 17 us.
/// @expect on --n 4 --c 64 --h 7 --w 7 --k 128 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch of four images, nine taps
/// @expect bytes.workspace.store 2 * 64 * 112 * 4 = 57344, half of the sums of each
/// @expect bytes_per_lane.workspace.load 16
/// **Costs.** As there: a workspace; declined where tiles are more than half the SMs, and sums over
/// 64 filters or fewer. Stride 1 only.
/// **Try.** Cut the sums by taps, and not by channels of dy. What would both blocks bring then?
#include <cooperative_groups.h>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/cooperative.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/half_windows.cuh"
#include "cuda_optimized/conv2d/patch_plan.cuh"
#include "cuda_optimized/conv2d/patch_result.cuh"
#include "cuda_optimized/conv2d/patch_sources.cuh"
#include "cuda_optimized/conv2d/patch_stages.cuh"
#include "cuda_optimized/conv2d/pixel_patch.cuh"
#include "cuda_optimized/conv2d/shared_sums.cuh"
#include "cuda_optimized/conv2d_dgrad/half_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/patch_taps.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

constexpr int kPairThreads = conv2d::kSumThreads + 32;  ///< Of a block; one warp is the producer.

using conv2d::kHalfTileColumns;
using conv2d::kPixelBytes;
using conv2d::kSharedColumns;
using conv2d::kSumThreads;
using conv2d::PatchBarriers;
using conv2d::PatchResult;
using conv2d::PatchStages;
using conv2d::PatchTile;
using conv2d::PatchTiles;
using conv2d::PatchWork;
using conv2d::SumExchange;

/// Sums over windows: a warpgroup multiplies, and one warp, the producer, brings patches and taps.
/// Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// A cooperative grid of 2 work.items; block kPairThreads; work.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(kPairThreads, 1)
    windows_in_patches(const __grid_constant__ Patches patches, const __grid_constant__ Taps taps,
                       const __grid_constant__ PatchWork work,
                       const __grid_constant__ PatchResult<T> result, SumExchange exchange) {
  __shared__ PatchBarriers barriers;
  PatchStages<> stages(work, barriers);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  stages.prepare<kPairThreads>();

  const PatchTiles& tiles = work.plan.tiles;
  const unsigned item = blockIdx.x / 2;
  const PatchTile tile = conv2d::tile_at(tiles, item / work.filter_tiles);
  const PatchFilters filters = conv2d::filters_at(work.windows, item % work.filter_tiles);
  // Of two blocks, the first one takes the first chunks.
  const int half = static_cast<int>(blockIdx.x % 2), chunks = work.windows.chunks();
  const int first = half == 0 ? 0 : chunks / 2, last = half == 0 ? chunks / 2 : chunks;
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const bool is_producer = __shfl_sync(~0u, thread / kSumThreads, 0) != 0;
  float sums[kSharedColumns / 2];
  if (is_producer) {
    if (lane == 0 || Taps::kWholeWarp) stages.bring(patches, taps, tile, filters, first, last);
  } else {
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    stages.template multiply<T, Taps>(tiles, sums, first, last);
    ptx::wgmma_wait_group<0>();  // nobody waits for the last slots
    half == 0 ? exchange.send<0>(sums) : exchange.send<1>(sums);
  }
  cooperative_groups::this_grid().sync();  // separates what is sent from what is read
  if (is_producer) return;
  float whole[kHalfTileColumns / 2];
  half == 0 ? exchange.add<0>(sums, whole) : exchange.add<1>(sums, whole);
  T* const draft = reinterpret_cast<T*>(stages.patch_slots);
  result.template round<kHalfTileColumns>(filters, whole, draft);
  ptx::named_barrier_sync(1, kSumThreads);  // separates these stores from all reads
  result.store_columns(tiles, tile, filters, half * kHalfTileColumns, kHalfTileColumns, draft);
}

/// The forward pass over dy.
HalfClass forward_pass(const Conv2dProblem& conv) { return HalfClassesPlan(conv).classes.front(); }

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: else each class of pixels has patches of its own";
  return conv2d::why_not_shared(forward_pass(conv).windows);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return SumExchange::bytes(forward_pass(conv).windows);
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result, const SumExchange& exchange) {
  launch_cooperatively(
      windows_in_patches<T, Patches, Taps>,
      {static_cast<unsigned>(2 * work.items), kPairThreads, work.plan.shared_bytes()}, patches,
      taps, work, result, exchange);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const HalfClass part = forward_pass(conv);
  const Windows& windows = part.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *dy = arrays.dy, *weights = arrays.weights;
    const int group_k = conv.K / conv.groups, group_c = conv.C / conv.groups;
    const PatchWork work(windows, conv2d::shared_plan(windows));
    const SumExchange exchange = {context.workspace_as<float4>()};
    const PatchTiles& tiles = work.plan.tiles;
    const auto result = conv2d::patch_result<T>(windows, tiles, nullptr, arrays.dx);
    if (conv2d::in_eights(group_k) && conv2d::in_eights(group_c) &&
        gemm::begin_at_16_bytes(dy, weights)) {
      launch_product(conv2d::copied_patches(work, conv2d::words_of(dy)),
                     copied_class_taps(conv, part, weights), work, result, exchange);
    } else {
      launch_product(conv2d::gathered_patches(work, dy, group_k),
                     GatheredClassTaps<T>{weights, part.taps, conv.R * conv.S, group_k, group_c},
                     work, result, exchange);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  if (forward_pass(conv).windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::tiles_in_words(conv2d::shared_plan(forward_pass(conv).windows).tiles),
              k_in_eights && c_in_eights ? ", by the copy engine" : ", by a warp",
              c_in_eights ? ", channels in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_wgmma_two_blocks = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
