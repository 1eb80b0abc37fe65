/// @file weight_stationary.cu
/// @brief conv2d on Hopper in 16 bits, filters of one tap: a pixel is brought once, for all
/// filters.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** With one tap a patch serves one product, and the rung before brings it again for
/// every 64 filters. But weights of one tap are few: B5's 256 filters of 64 channels take 32 KB.
/// *All of them stay*, and a tile of pixels meets them one after the other:
///
///     shared memory   filters 0-63 | 64-127 | 128-191 | 192-255     once
///                     pixels of a tile, of the next one ...         each once
///     warpgroup 0     tile 0: 0-63 | 128-191     tile 1: 0-63 | 128-191
///     warpgroup 1     tile 0: 64-127 | 192-255   tile 1: 64-127 | 192-255
///
/// Both warpgroups read the same pixels, and a slot is empty when both have: so they need not take
/// turns, for neither can be two rounds ahead. Without stride and padding the pixels of all images
/// are rows of one matrix. A tile may have any 128 of them, whatever the images' sizes, and the
/// last turn of the SMs is nearly full: B5 has 784 tiles, 5.94 for each of 132. An output that is
/// too large for the L2 cache is stored with a hint that it may go first: else it takes the place
/// of pixels, which the layer before has just written and nobody has read yet.
///
/// **Expect.** B5 brings 13 MB of pixels and not 51, and stores 51 MB: 17 us in place of 20. B15,
/// with 512 filters, brings 103 MB, and stores 822: 250 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 256 --r 1 --s 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 4) = 10, two blocks: pixels, and four times 64 filters
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** Declined: more taps than one, and weights that leave no room for the pixels of a tile
/// and some of the next. Images in strips or rows where there is a stride, or padding.
/// **Try.** Which layers of a network have one tap, and weights that fit?
#include "core/conv2d_problem.hpp"
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
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr unsigned kConsumers = gemm::kConsumers;  ///< Warpgroups that multiply.
/// Sums over windows of one tap: one warp, the producer, brings patches, and weights once; the
/// others, two warpgroups of consumers, take turns at the tiles of filters. Patches: CopiedPatches
/// or GatheredPatches, Taps likewise.
/// Grid: a multiple of the groups; block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_weight_stationary(const __grid_constant__ Patches patches,
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

/// What there is to compute, with channels in words.
Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  return as_a_matrix(in_words(windows));
}

std::int64_t output_bytes(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.K * conv.P * conv.Q * 2;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_not_all_filters(conv, windows_of(conv));
}

template <class T, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const PatchResult<T>& result) {
  with_filters_columns(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
    launch(conv2d_hopper_weight_stationary<T, kColumns, Patches, Taps>,
           {dim3(filters_blocks(work)), dim3(gemm::kWgmmaThreads), work.plan.shared_bytes()},
           patches, taps, work, result);
  });
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    const int group_c = conv.C / conv.groups;
    const PatchWork work(windows, filters_plan(windows));
    const PatchTiles& tiles = work.plan.tiles;
    const PatchResult<T> result = patch_result<T>(windows, tiles, arrays.bias, arrays.y,
                                                  passes_the_cache(output_bytes(conv)));
    if (in_eights(group_c) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(copied_patches(work, words_of(x)), copied_taps(windows, words_of(weights)),
                     work, result);
    } else {
      launch_product(gathered_patches(work, x, group_c), GatheredTaps<T>{weights, 1, 1, group_c},
                     work, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              tiles_in_words(filters_plan(windows).tiles),
              in_eights(conv.C / conv.groups) ? ", by TMA" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "",
              passes_the_cache(output_bytes(conv)) ? ", past the L2 cache" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_weight_stationary = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
