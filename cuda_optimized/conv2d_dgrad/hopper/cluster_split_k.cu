/// @file cluster_split_k.cu
/// @brief conv2d_dgrad on Hopper in 16 bits: split-K over a cluster of two blocks for each tile.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** That of ../conv2d/implicit_gemm_wgmma_block_pairs.cu: where tiles are few and sums
/// are long, two blocks, a cluster, take the same tile and half of dy's channels each, and write
/// halves of their sums into each other's shared memory:
///
///     block 0   dy's channels 0 to 255      columns 112 ... 223  ->  shared memory of block 1
///     block 1   dy's channels 256 to 511    columns   0 ... 111  ->  shared memory of block 0
///
/// Weights are the transposed operand A, as in the rung before. That `wgmma` reads them across
/// costs nothing here, either: shared memory has time while it multiplies 224 columns.
///
/// **Expect.** The forward pass's time, for the same products: B7 15.5 us.
/// @expect on --n 4 --c 64 --h 7 --w 7 --k 128 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) + 2 * 4 * 14 = 132, boxes of two blocks, and sums
/// @expect launches 1
/// @expect blocks 2, a cluster
/// **Costs.** As there. Stride 1 only; declined: sums over 64 filters or fewer.
/// **Try.** What do the two blocks load that is the same? Let TMA load it to both.
#include "core/conv2d_gradients.hpp"
#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/cluster_reduction.cuh"
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

constexpr int kPairThreads = conv2d::kSumThreads + 32;  ///< Of a block; one warp is the producer.

using conv2d::kHalfTileColumns;
using conv2d::kPairBytes;
using conv2d::kPixelBytes;
using conv2d::kSharedColumns;
using conv2d::kSumThreads;
using conv2d::PairExchange;
using conv2d::PatchBarriers;
using conv2d::PatchResult;
using conv2d::PatchStages;
using conv2d::PatchTile;
using conv2d::PatchTiles;
using conv2d::PatchWork;

/// Sums over windows: a warpgroup multiplies, and one warp, the producer, brings patches and taps.
/// Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// Grid: 2 work.items, in clusters of two; block kPairThreads; work.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(kPairThreads, 1)
    conv2d_dgrad_hopper_cluster_split_k(const __grid_constant__ Patches patches,
                                        const __grid_constant__ Taps taps,
                                        const __grid_constant__ PatchWork work,
                                        const __grid_constant__ PatchResult<T> result) {
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t sums_came;  // from the other block
  PatchStages<> stages(work, barriers);
  const PairExchange exchange = {reinterpret_cast<float4*>(stages.behind), &sums_came};
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    ptx::mbarrier_init(&sums_came, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&sums_came, kPairBytes);
  }
  stages.prepare<kPairThreads>();
  ptx::barrier_cluster_arrive_relaxed();  // the other one will wait before it sends

  const PatchTiles& tiles = work.plan.tiles;
  const unsigned item = blockIdx.x / 2;
  const PatchTile tile = conv2d::tile_at(tiles, item / work.filter_tiles);
  const PatchFilters filters = conv2d::filters_at(work.windows, item % work.filter_tiles);
  // Of two blocks, the first one takes the first chunks.
  const int half = static_cast<int>(blockIdx.x % 2), chunks = work.windows.chunks();
  const int first = half == 0 ? 0 : chunks / 2, last = half == 0 ? chunks / 2 : chunks;
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const bool is_producer = __shfl_sync(~0u, thread / kSumThreads, 0) != 0;
  if (is_producer) {
    if (lane == 0 || Taps::kWholeWarp) stages.bring(patches, taps, tile, filters, first, last);
    return;
  }
  float sums[kSharedColumns / 2];
#pragma unroll
  for (float& sum : sums) sum = 0.0f;
  stages.template multiply<T, Taps>(tiles, sums, first, last);
  ptx::wgmma_wait_group<0>();   // nobody waits for the last slots
  ptx::barrier_cluster_wait();  // separates the other block's barrier's initialisation from its use
  half == 0 ? exchange.send<0>(sums) : exchange.send<1>(sums);
  float whole[kHalfTileColumns / 2];
  half == 0 ? exchange.add<0>(sums, whole) : exchange.add<1>(sums, whole);
  ptx::named_barrier_sync(1, kSumThreads);  // separates all products from the draft in their place
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
  return conv2d::why_no_pairs(forward_pass(conv).windows);
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  launch_in_clusters(
      2, conv2d_dgrad_hopper_cluster_split_k<T, Patches, Taps>,
      {static_cast<unsigned>(2 * work.items), kPairThreads, work.plan.shared_bytes()}, patches,
      taps, work, result);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const HalfClass part = forward_pass(conv);
  const Windows& windows = part.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *dy = arrays.dy, *weights = arrays.weights;
    const int group_k = conv.K / conv.groups, group_c = conv.C / conv.groups;
    const PatchWork work(windows, conv2d::pair_plan(windows));
    const PatchTiles& tiles = work.plan.tiles;
    const auto result = conv2d::patch_result<T>(windows, tiles, nullptr, arrays.dx);
    if (conv2d::in_eights(group_k) && conv2d::in_eights(group_c) &&
        gemm::begin_at_16_bytes(dy, weights)) {
      launch_product(conv2d::copied_patches(work, conv2d::words_of(dy)),
                     copied_class_taps(conv, part, weights), work, result);
    } else {
      launch_product(conv2d::gathered_patches(work, dy, group_k),
                     GatheredClassTaps<T>{weights, part.taps, conv.R * conv.S, group_k, group_c},
                     work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  if (forward_pass(conv).windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::tiles_in_words(conv2d::pair_plan(forward_pass(conv).windows).tiles),
              k_in_eights && c_in_eights ? ", by TMA" : ", by a warp",
              c_in_eights ? ", channels in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_cluster_split_k = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
