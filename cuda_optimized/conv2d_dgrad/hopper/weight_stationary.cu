/// @file weight_stationary.cu
/// @brief conv2d_dgrad on Hopper in 16 bits, filters of one tap: all weights stay.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** That of ../conv2d/implicit_gemm_wgmma_all_filters.cu. With one tap and stride 1
/// the input gradient is a product of matrices, whose rows are pixels of dy, and the weights of all
/// tiles of dx's channels stay in shared memory. B5 has one such tile, of 64 channels, and a sum
/// over 256 filters: its pixels are brought once by the rung before, too. But here a tile is any
/// 128 pixels of all images:
///
///     the rung before    28 x 8 pixels of an image     448 tiles    4 turns of 132 SMs, 3.39 full
///     here               128 pixels                    784          6 turns,            5.94 full
///
/// So the longest turn has 768 columns, and not 896. A dy that is too large for the L2 cache is
/// read with a hint that it may leave it first: each pixel is needed once, and dx may stay.
///
/// **Expect.** B5 a seventh less than by the rung before, 18 us.
/// @expect on --n 1 --c 128 --h 16 --w 16 --k 64 --r 1 --s 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 2) = 6, two blocks: pixels, and twice 64 channels of dx
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, TMA stores
/// **Costs.** As there. Stride 1 only.
/// **Try.** Which tile, of 128 or of 192 pixels, wastes less of the last turn with half the images?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/filter_stages.cuh"
#include "cuda_optimized/conv2d/shared/halo/filters_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/halo/passing_arrays.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/half_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/halo_taps.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

constexpr unsigned kConsumers = gemm::kConsumers;  ///< Warpgroups that multiply.

using conv2d::FilterBarriers;
using conv2d::FilterStages;
using conv2d::PatchResult;
using conv2d::PatchTile;
using conv2d::PatchTiles;
using conv2d::PatchWork;

/// Sums over windows of one tap: one warp, the producer, brings patches, and weights once; the
/// others, two warpgroups of consumers, take turns at the tiles of filters. Patches: CopiedPatches
/// or GatheredPatches, Taps likewise.
/// Grid: a multiple of the groups; block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_dgrad_hopper_weight_stationary(const __grid_constant__ Patches patches,
                                          const __grid_constant__ Taps taps,
                                          const __grid_constant__ PatchWork work,
                                          const __grid_constant__ PatchResult<T> result) {
  __shared__ FilterBarriers barriers;
  FilterStages stages(work, barriers);
  stages.prepare();

  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (threadIdx.x % 32 != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < stages.items(); item += gridDim.x, is_first = false)
      stages.bring(patches, taps, stages.tile_of(item), is_first);
    return;
  }

  T* const draft = reinterpret_cast<T*>(stages.drafts + consumer * work.plan.draft_bytes);
  ptx::mbarrier_wait(&barriers.full_taps, 0);
  unsigned turn = 0;  // tiles of filters that came before, modulo 2
  for (unsigned item = blockIdx.x; item < stages.items(); item += gridDim.x, stages.step()) {
    const PatchTile tile = stages.tile_of(item);
    unsigned i = (turn + static_cast<unsigned>(consumer)) % kConsumers;
    turn = (turn + stages.tiles) % kConsumers;
    if (i >= stages.tiles) stages.release();
    for (; i < stages.tiles; i += kConsumers) {
      float sums[kColumns / 2];
#pragma unroll
      for (float& sum : sums) sum = 0.0f;
      stages.multiply<T, Taps>(i, sums);
      if (i + kConsumers >= stages.tiles) stages.release();
      result.template store<kColumns>(work.plan.tiles, tile, stages.filters_of(i), consumer, sums,
                                      draft);
    }
  }
  result.finish();
}

std::int64_t dy_bytes(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.K * conv.P * conv.Q * 2;
}

/// The forward pass over dy.
HalfClass forward_pass(const Conv2dProblem& conv) {
  HalfClass part = HalfClassesPlan(conv).classes.front();
  part.windows = conv2d::as_a_matrix(part.windows);
  return part;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: else each class of pixels has patches of its own";
  return conv2d::why_not_all_filters(conv, forward_pass(conv).windows);
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  conv2d::with_filters_columns(
      work.plan.tiles.columns, [&]<int kColumns>(conv2d::Columns<kColumns>) {
        launch(conv2d_dgrad_hopper_weight_stationary<T, kColumns, Patches, Taps>,
               {dim3(conv2d::filters_blocks(work)), dim3(gemm::kWgmmaThreads),
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
    const PatchWork work(windows, conv2d::filters_plan(windows));
    const PatchTiles& tiles = work.plan.tiles;
    const auto result = conv2d::patch_result<T>(windows, tiles, nullptr, arrays.dx);
    if (conv2d::in_eights(group_k) && conv2d::in_eights(group_c) &&
        gemm::begin_at_16_bytes(dy, weights)) {
      launch_product(conv2d::PassingPatches{conv2d::copied_patches(work, conv2d::words_of(dy)),
                                            conv2d::passes_the_cache(dy_bytes(conv))},
                     copied_class_taps(conv, part, weights), work, result);
    } else {
      launch_product(conv2d::gathered_patches(work, dy, group_k),
                     GatheredClassTaps<T>{weights, part.taps, conv.R * conv.S, group_k, group_c},
                     work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Windows windows = forward_pass(conv).windows;
  if (windows.pixels() == 0) return "nothing to do";
  const bool k_in_eights = conv2d::in_eights(conv.K / conv.groups);
  const bool c_in_eights = conv2d::in_eights(conv.C / conv.groups);
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::tiles_in_words(conv2d::filters_plan(windows).tiles),
              k_in_eights && c_in_eights ? ", by TMA" : ", by a warp",
              c_in_eights ? ", channels in eights" : "",
              conv2d::passes_the_cache(dy_bytes(conv)) ? ", past the L2 cache" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_weight_stationary = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
