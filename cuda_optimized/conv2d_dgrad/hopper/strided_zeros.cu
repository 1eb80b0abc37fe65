/// @file strided_zeros.cu
/// @brief conv2d_dgrad on Hopper in 16 bits, filters of one tap with a stride: idle warps write the
/// zeros.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 2 and one tap, three of four pixels of dx are zero: nobody read them.
/// implicit_gemm/warp_specialized.cu fills dx with zeros, and then writes a quarter of it again,
/// two numbers at a time. Here all of it is written once. The pixels of a class, every second one
/// of every second row, are an array of their own to TMA, whose map has the strides.
/// What is left is the rung before, over a quarter of the pixels; and *a warp has time*:
///
///     dx   y 0 y 0 y 0     y: TMA, from the drafts of tiles
///          0 0 0 0 0 0     0: three warps beside the producer, row by row
///          y 0 y 0 y 0
///
/// Registers are given to warps in fours. Where the producer is a warp alone, three more of them
/// cost nothing.
///
/// **Expect.** B8 reads 26 MB and writes 51. With the hint of conv2d's
/// weight_stationary.cu, that dx may leave the L2 cache first, dy stays there: 51 MB
/// at 4.2 TB/s are 12 us, and each dy is brought 4 times, 103 MB at 36 bytes a cycle and SM, 13 us
/// beside: 20 us with begin and end, where 16bit takes 41 and cuDNN 34.
/// @expect on --n 1 --c 64 --h 32 --w 32 --k 64 --r 1 --s 1 --stride 2 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 1) = 4, two blocks: a patch, weights of one tap
/// @expect bytes_per_lane.dx.store 16, zeros; TMA stores the others
/// @expect bytes.dx.store 3 * 16 * 16 * 64 * 2 = 98304, three of four pixels
/// **Costs.** Declined: stride 1, and filters whose taps reach several classes, as those of 3 x 3
/// do with stride 2.
/// **Try.** Which filters larger than 1 x 1 reach one class only?
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
#include "cuda_optimized/conv2d/shared/halo/passing_arrays.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/half_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/halo_taps.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/zeros_between.cuh"
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

constexpr int kZeroWarps = 3;  ///< Beside the producer, in the fourth warpgroup's place.
constexpr int kThreads = gemm::kWgmmaThreads + 32 * kZeroWarps;  ///< Of a block.

/// Sums over windows: one warp, the producer, brings patches and taps; the others, two warpgroups
/// of consumers, take turns at the tiles. Patches: CopiedPatches or GatheredPatches, Taps likewise.
/// kZeroWarps more write zeros.
/// Grid: <= work.blocks(); block kThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(kThreads, 1)
    conv2d_dgrad_hopper_strided_zeros(const __grid_constant__ Patches patches,
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
  stages.prepare<kThreads>();

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
    if (const int warp = thread / 32 - gemm::kConsumerThreads / 32; warp > 0) {
      store_zeros_between(result, blockIdx.x * kZeroWarps + static_cast<unsigned>(warp - 1),
                          gridDim.x * kZeroWarps);
      return;
    }
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

/// The forward pass over dy of the one class of pixels that taps reach.
HalfClass only_class(const Conv2dProblem& conv) { return HalfClassesPlan(conv).classes.front(); }

std::int64_t dx_bytes(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.C * conv.H * conv.W * 2;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  const int pixels = std::min(conv.stride.h, conv.H) * std::min(conv.stride.w, conv.W);
  const auto with_taps = static_cast<int>(HalfClassesPlan(conv).classes.size());
  if (pixels == 1) return "one class of pixels: there are no zeros between them";
  if (with_taps != 1)
    return text("taps reach ", with_taps, " classes of pixels: only patches of one are brought");
  const Windows windows = only_class(conv).windows;
  return conv2d::why_no_patches(windows, conv2d::patch_plan(windows, kPixelBytes));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  conv2d::with_columns<true>(work.plan.tiles.columns, [&]<int kColumns>(conv2d::Columns<kColumns>) {
    launch(
        conv2d_dgrad_hopper_strided_zeros<T, kColumns, Patches, Taps>,
        {dim3(blocks_for(work.items, 1, work.blocks())), dim3(kThreads), work.plan.shared_bytes()},
        patches, taps, work, result);
  });
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const HalfClass part = only_class(conv);
  const Windows& windows = part.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *dy = arrays.dy, *weights = arrays.weights;
    const int group_k = conv.K / conv.groups, group_c = conv.C / conv.groups;
    const PatchWork work(windows, conv2d::patch_plan(windows, kPixelBytes));
    const PatchTiles& tiles = work.plan.tiles;
    const auto result = conv2d::patch_result<T>(windows, tiles, nullptr, arrays.dx,
                                                conv2d::passes_the_cache(dx_bytes(conv)));
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
              conv2d::patch_plan_in_words(only_class(conv).windows, kPixelBytes),
              k_in_eights && c_in_eights ? ", by TMA" : ", by a warp",
              c_in_eights ? ", channels in eights" : "",
              conv2d::passes_the_cache(dx_bytes(conv)) ? ", past the L2 cache" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_strided_zeros = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
