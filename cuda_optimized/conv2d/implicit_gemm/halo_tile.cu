/// @file halo_tile.cu
/// @brief conv2d on Hopper in 16 bits: a patch of pixels is brought once, for all taps.
///
/// - Before: warp_specialized.cu
/// - After: hopper/cluster_split_k.cu, hopper/full_tiles.cu, hopper/weight_stationary.cu,
///   hopper/halo_tile_tf32.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** An implicit product brings each pixel once for every tap. What limits it is the L2
/// cache: it gives an SM 36 bytes a cycle, and a step of 64 x 256 wants 80. But the tiles of nine
/// taps are one *patch* of pixels, each time a little further on. It is brought once, with its
/// edge; pixels follow one another in shared memory, and *a tap is an address*:
///
///     patch of 10 x 6, tile of 8 x 4     tap (0, 0)     tap (0, 1)     tap (2, 2)
///     . . . . . . . . . .                ########..     .########      ..........
///     . . . . . . . . . .   6 rows       ########..     .########      ..########   ...
///
/// The columns of `wgmma` are pixels, in groups of 8 as far apart as its descriptor says: a row of
/// the patch. The permutation against bank conflicts follows the bits of the address, so that a
/// tile may begin at any pixel. Tiles are strips, whole rows or whole images
/// (shared/halo/halo_tile.cuh); the loops over a tile are in shared/halo/halo_stages.cuh. A tap's
/// weights have a ring of their own; if all of 64 filters fit, they stay from tile to tile.
/// Accumulators are rounded, transposed by `stmatrix` and stored by TMA during the next tile.
///
/// **Expect.** B4, tiles of 8 x 28 pixels: 38 KB in 4032 cycles, 10 bytes a cycle. 448 tiles are
/// four turns of 132 SMs, 9 us at the peak: 13 us. B9 is 27 turns, 64 us, and 49 of DRAM: 85.
/// B10 brings 1.7 GB, not 2.8, with 6 % of columns to spare: 310. B5 20, B6 14, B7 16, B8 15.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch, weights of nine taps
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** Few images of a few pixels fill no tile, and sums are not cut into parts. Declined:
/// strides of larger filters, filters that reach too far, maps, and as before.
/// **Try.** How many bytes a cycle do 1 x 1 filters bring? Let two tiles of filters share a patch.
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
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
/// of consumers, take turns at the tiles. Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_implicit_gemm_halo_tile(const __grid_constant__ Patches patches,
                                   const __grid_constant__ Taps taps,
                                   const __grid_constant__ PatchWork work,
                                   const __grid_constant__ PatchResult<T> result) {
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
  }
  PatchStages<> stages(work, barriers);
  stages.prepare<gemm::kWgmmaThreads>();

  const PatchPlan& plan = work.plan;
  const int chunks = work.windows.chunks();
  const auto tile_of = [&](unsigned item) { return tile_at(plan.tiles, item / work.filter_tiles); };
  const auto filters_of = [&](unsigned item) {
    return filters_at(work.windows, item % work.filter_tiles);
  };
  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      stages.bring(patches, taps, tile_of(item), filters_of(item), 0, chunks,
                   is_first || !plan.stay);
    }
    return;
  }

  T* const draft = reinterpret_cast<T*>(stages.behind + consumer * plan.draft_bytes);
  int turn = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++turn) {
    if (turn % gemm::kConsumers != consumer) {
      stages.skip();
      continue;
    }
    float sums[kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    // Without it, a patch of the tile before, two rounds earlier, would look like this one's.
    if (turn > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (turn - 1) / 2 & 1);
    stages.template multiply<T, Taps>(plan.tiles, sums, 0, chunks);
    if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
    stages.finish();
    result.template store<kColumns>(plan.tiles, tile_of(item), filters_of(item), consumer, sums,
                                    draft);
  }
  result.finish();
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
  const Windows windows = windows_of(conv);
  return why_no_patches(windows, patch_plan(windows, kPixelBytes));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  with_columns<true>(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
    launch(conv2d_implicit_gemm_halo_tile<T, kColumns, Patches, Taps>,
           {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
            work.plan.shared_bytes()},
           patches, taps, work, result);
  });
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    const int group_c = conv.C / conv.groups;
    const PatchWork work(windows, patch_plan(windows, kPixelBytes));
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
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              patch_plan_in_words(windows_of(conv), kPixelBytes),
              in_eights(conv.C / conv.groups) ? ", by TMA" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_halo_tile = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
