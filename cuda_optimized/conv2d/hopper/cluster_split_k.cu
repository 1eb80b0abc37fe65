/// @file cluster_split_k.cu
/// @brief conv2d on Hopper in 16 bits: split-K over a cluster of two blocks for each tile.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** B7 (32x512x7x7, 512 filters 3x3) has 64 tiles of 64 filters by four images, and an
/// H200 132 SMs. The rung before gives each SM two images, half a tile; a tap's weights then serve
/// half as many products, and the L2 cache supplies most of its bytes twice. Here two blocks, a
/// cluster, take the same tile and half of the channels each. Each sends the half of its sums that
/// the other one stores, by `st.async`, which also counts the bytes at a barrier there:
///
///     block 0   channels   0 ... 255   columns 112 ... 223  ->  shared memory of block 1
///     block 1   channels 256 ... 511   columns   0 ... 111  ->  shared memory of block 0
///
/// The sums have 28 KB of their own beside the stages, so a block waits for these bytes and for
/// nothing else. Each sum is of two numbers, whose order makes no difference.
///
/// **Expect.** A block has 36 steps of 448 cycles, as B6 has by the rung before (13.5 us), and 28
/// KB from SM to SM take 2400 cycles at 12 bytes a cycle. B7 15.5 us.
/// @expect on --n 4 --c 128 --h 7 --w 7 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) + 2 * 4 * 14 = 132, boxes of two blocks, and sums
/// @expect launches 1
/// @expect blocks 2, a cluster
/// **Costs.** Shared memory: fewer taps are on their way at a time. Declined: sums over 64 channels
/// or fewer. Problems with many tiles are taken, and are faster without pairs.
/// **Try.** Two blocks of different filters load the same patches. Which cluster would share both
/// patches and sums?
#include "core/conv2d_problem.hpp"
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
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPairThreads = kSumThreads + 32;  ///< Of a block; one warp is the producer.

/// Sums over windows: a warpgroup multiplies, and one warp, the producer, brings patches and taps.
/// Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// Grid: 2 work.items, in clusters of two; block kPairThreads; work.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(kPairThreads, 1)
    conv2d_hopper_cluster_split_k(const __grid_constant__ Patches patches,
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
  const PatchTile tile = tile_at(tiles, item / work.filter_tiles);
  const PatchFilters filters = filters_at(work.windows, item % work.filter_tiles);
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
  return why_no_pairs(windows_of(conv));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  launch_in_clusters(
      2, conv2d_hopper_cluster_split_k<T, Patches, Taps>,
      {static_cast<unsigned>(2 * work.items), kPairThreads, work.plan.shared_bytes()}, patches,
      taps, work, result);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    const int group_c = conv.C / conv.groups;
    const PatchWork work(windows, pair_plan(windows));
    const PatchTiles& tiles = work.plan.tiles;
    const PatchResult<T> result = patch_result<T>(windows, tiles, arrays.bias, arrays.y);
    if (in_eights(group_c) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(copied_patches(work, words_of(x)), copied_taps(windows, words_of(weights)),
                     work, result);
    } else {
      launch_product(gathered_patches(work, x, group_c),
                     GatheredTaps<T>{weights, conv.R, conv.S, group_c}, work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (windows_of(conv).pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              tiles_in_words(pair_plan(windows_of(conv)).tiles),
              in_eights(conv.C / conv.groups) ? ", by TMA" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_cluster_split_k = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
