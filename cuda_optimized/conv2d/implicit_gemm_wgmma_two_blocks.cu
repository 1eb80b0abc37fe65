/// @file implicit_gemm_wgmma_two_blocks.cu
/// @brief conv2d on Hopper in 16 bits: two blocks share the sums of a tile, and exchange halves.
///
/// - Before: implicit_gemm_wgmma_patches.cu
/// - After: implicit_gemm_wgmma_block_pairs.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** B7 (32x512x7x7, 512 filters 3x3) has 64 tiles of 64 filters by four images, and an
/// H200 132 SMs. The rung before gives each SM half a tile, two images; but a tap's weights then
/// serve half as many products, and the L2 cache brings most of its bytes twice. Sums of 4608
/// products can be cut instead. Two blocks take the same tile, and half of the channels each. Both
/// have a part of all sums then, and *each sends the half that the other one stores*:
///
///     block 0   channels 0 to 255      columns   0 ... 111  +  what block 1 sends  ->  y
///     block 1   channels 256 to 511    columns 112 ... 223  +  what block 0 sends  ->  y
///
/// Sums travel through the L2 cache as registers hold them, 16 bytes a lane: they are read by the
/// same thread of the other block. A barrier of the whole grid lies between, so the launch is
/// cooperative. Each sum is of two numbers, whose order makes no difference: results are the same
/// in every run, and there is neither a second kernel nor a counter to be cleared.
///
/// **Expect.** A block has 36 steps of 448 cycles, as B6 has by the rung before, and the L2 cache
/// brings 27 bytes a cycle in place of 39. 28 KB to send and to read, and a barrier, take 2 to 3 us
/// more than B6: B7 17 us.
/// @expect on --n 4 --c 128 --h 7 --w 7 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch of four images, nine taps
/// @expect bytes.workspace.store 2 * 64 * 112 * 4 = 57344, half of the sums of each
/// @expect bytes_per_lane.workspace.load 16
/// **Costs.** A workspace of floats. All blocks must run at once: declined where there are more
/// tiles than half the SMs, and sums over 64 channels or fewer.
/// **Try.** A cluster of two blocks reads one another's shared memory. What would be left of the
/// workspace, and of the barrier?
#include <cooperative_groups.h>

#include "core/conv2d_problem.hpp"
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
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPairThreads = kSumThreads + 32;  ///< Of a block; one warp is the producer.

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
  const PatchTile tile = tile_at(tiles, item / work.filter_tiles);
  const PatchFilters filters = filters_at(work.windows, item % work.filter_tiles);
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
  return why_not_shared(windows_of(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return SumExchange::bytes(windows_of(conv));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result, const SumExchange& exchange) {
  launch_cooperatively(
      windows_in_patches<T, Patches, Taps>,
      {static_cast<unsigned>(2 * work.items), kPairThreads, work.plan.shared_bytes()}, patches,
      taps, work, result, exchange);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    const int group_c = conv.C / conv.groups;
    const PatchWork work(windows, shared_plan(windows));
    const SumExchange exchange = {context.workspace_as<float4>()};
    const PatchTiles& tiles = work.plan.tiles;
    const PatchResult<T> result = patch_result<T>(windows, tiles, arrays.bias, arrays.y);
    if (in_eights(group_c) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(copied_patches(work, words_of(x)), copied_taps(windows, words_of(weights)),
                     work, result, exchange);
    } else {
      launch_product(gathered_patches(work, x, group_c),
                     GatheredTaps<T>{weights, conv.R, conv.S, group_c}, work, result, exchange);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (windows_of(conv).pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              tiles_in_words(shared_plan(windows_of(conv)).tiles),
              in_eights(conv.C / conv.groups) ? ", by the copy engine" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_wgmma_two_blocks = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
