/// @file halo_tile.cu
/// @brief conv2d_dgrad on Hopper in 16 bits: a patch of dy is brought once, for all taps.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - After: cluster_split_k.cu, full_tiles.cu, weight_stationary.cu, strided_zeros.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a forward pass over dy with the filter turned
/// around. So the patches of ../conv2d/implicit_gemm_wgmma_patches.cu serve here, too:
/// TMA loads the pixels of dy that a tile of dx depends on, once, and a tap is an address in
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
/// @expect requests.dx.store 0, TMA stores
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

using conv2d::kPixelBytes;
using conv2d::PatchBarriers;
using conv2d::PatchPlan;
using conv2d::PatchResult;
using conv2d::PatchStages;
using conv2d::PatchTiles;
using conv2d::PatchWork;

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, take turns at the tiles. Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_dgrad_hopper_halo_tile(const __grid_constant__ Patches patches,
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
  const auto tile_of = [&](unsigned item) {
    return conv2d::tile_at(plan.tiles, item / work.filter_tiles);
  };
  const auto filters_of = [&](unsigned item) {
    return conv2d::filters_at(work.windows, item % work.filter_tiles);
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
    launch(conv2d_dgrad_hopper_halo_tile<T, kColumns, Patches, Taps>,
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
      launch_product(conv2d::gathered_patches(work, dy, group_k),
                     GatheredClassTaps<T>{weights, part.taps, conv.R * conv.S, group_k, group_c},
                     work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::patch_plan_in_words(forward_pass(conv).windows, kPixelBytes),
              k_in_eights && c_in_eights ? ", by TMA" : ", by a warp",
              c_in_eights ? ", channels in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_halo_tile = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
