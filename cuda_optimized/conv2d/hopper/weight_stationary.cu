/// @file weight_stationary.cu
/// @brief Weight-stationary 1 x 1 filters: all weights stay in shared memory, and each pixel is
/// loaded once.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** With one tap a patch serves one product, and halo_tile.cu loads it again for every
/// 64 filters. But weights of one tap are few: B5's 256 filters of 64 channels take 32 KB. *All of
/// them stay* in shared memory, and a tile of pixels is multiplied by one tile of filters after the
/// other:
///
///     shared memory   filters 0-63 | 64-127 | 128-191 | 192-255     once
///                     pixels of a tile, of the next one ...         each once
///     warpgroup 0     tile 0: 0-63 | 128-191     tile 1: 0-63 | 128-191
///     warpgroup 1     tile 0: 64-127 | 192-255   tile 1: 64-127 | 192-255
///
/// Both warpgroups read the same pixels, and a slot is empty when both have done so. Without stride
/// and padding the pixels of all images are rows of one matrix: a tile is any 128 of them, whatever
/// the images' sizes, and the last wave is nearly full: B5 has 784 tiles, 5.94 for each of 132 SMs.
/// An output that is too large for the L2 cache is stored with an evict-first hint: otherwise it
/// displaces pixels that the layer before has just written.
///
/// **Expect.** B5 loads 13 MB of pixels instead of 51, and stores 51 MB: 17 us instead of 20. B15,
/// with 512 filters, loads 103 MB, and stores 822 MB: 250 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 256 --r 1 --s 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 4) = 10, two blocks: pixels, and four times 64 filters
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** Not supported: more taps than one, and weights that leave no room for the pixels of a
/// tile and some of the next. With a stride or padding, tiles are strips or rows of images.
/// **Try.** Which layers of a network have one tap, and weights that fit?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/hopper/weight_stationary.cuh"
#include "cuda_optimized/conv2d/shared/halo/filter_stages.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr unsigned kConsumers = gemm::kConsumers;  ///< Consumer warpgroups.
/// Sums over windows of one tap: one warp, the producer, loads patches, and weights once; the
/// others, two consumer warpgroups, compute the tiles of filters alternately. Patches: TmaPatches
/// or GatheredPatches, Taps likewise. Grid: a multiple of the groups; block gemm::kWgmmaThreads;
/// work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_weight_stationary(const __grid_constant__ Patches patches,
                                    const __grid_constant__ Taps taps,
                                    const __grid_constant__ PatchWork work,
                                    const __grid_constant__ PatchResult<T> result) {
  __shared__ FilterBarriers barriers;
  FilterStages stages(work, barriers);
  stages.prepare();

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (threadIdx.x % 32 != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < stages.items(); item += gridDim.x, is_first = false)
      stages.load(patches, taps, stages.tile_of(item), is_first);
    return;
  }

  T* const staging = reinterpret_cast<T*>(stages.staging + consumer * work.plan.staging_bytes);
  ptx::mbarrier_wait(&barriers.full_taps, 0);
  unsigned turn = 0;  // tiles of filters that came before, modulo 2
  for (unsigned item = blockIdx.x; item < stages.items(); item += gridDim.x, stages.step()) {
    const PatchTile tile = stages.tile_of(item);
    unsigned i = (turn + static_cast<unsigned>(consumer)) % kConsumers;
    turn = (turn + stages.tiles) % kConsumers;
    if (i >= stages.tiles) stages.release();
    for (; i < stages.tiles; i += kConsumers) {
      float accumulators[kColumns / 2];
#pragma unroll
      for (float& sum : accumulators) sum = 0.0f;
      // accumulators[filter][pixel] += weights[filter of tile i][c] * patch[pixel][c] for all c
      stages.multiply<T, Taps>(i, accumulators);
      if (i + kConsumers >= stages.tiles) stages.release();
      result.template store<kColumns>(work.plan.tiles, tile, stages.filters_of(i), consumer,
                                      accumulators, staging);
    }
  }
  result.finish();
}

/// Whether the larger array gets an evict-first hint: the output of a forward pass, or a gradient's
/// dy.
bool passes(const HalfProduct& product) {
  const std::int64_t source_pixels =
      std::int64_t{product.windows.N} * product.windows.H * product.windows.W;
  return passes_the_cache(2 * (product.transposed
                                   ? source_pixels * product.windows.groups * product.group_c
                                   : product.windows.pixels() * product.windows.K));
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

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_not_weight_stationary(forward_product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  launch_weight_stationary(
      forward_product_of(conv),
      {.source = arrays.x, .weights = arrays.weights, .bias = arrays.bias, .out = arrays.y});
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return weight_stationary_in_words(forward_product_of(conv));
}

}  // namespace

Declined why_not_weight_stationary(const HalfProduct& product) {
  return why_not_all_filters(as_a_matrix(product.windows));
}

void launch_weight_stationary(const HalfProduct& product, const HalfArrays& arrays) {
  const Windows windows = as_a_matrix(product.windows);
  if (windows.pixels() == 0) return;
  HalfProduct matrix = product;
  matrix.windows = windows;
  with_half_type(product.dtype, [&]<class T>(T) {
    const PatchWork work(windows, filters_plan(windows));
    const auto result = patch_result<T>(windows, work.plan.tiles, arrays.bias, arrays.out,
                                        !product.transposed && passes(product));
    with_halo_operands<T>(
        matrix, arrays, work, [&]<class PatchesOf, class Taps>(PatchesOf patches_of, Taps taps) {
          if constexpr (Taps::kTransposed && !Taps::kWholeWarp) {
            launch_product(PassingPatches{patches_of(work), passes(product)}, taps, work, result);
          } else {
            launch_product(patches_of(work), taps, work, result);
          }
        });
  });
}

std::string weight_stationary_in_words(const HalfProduct& product) {
  const Windows windows = as_a_matrix(product.windows);
  if (windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(product.dtype, Precision{}), ", ",
              tiles_in_words(filters_plan(windows).tiles), operands_in_words(product),
              passes(product) ? ", past the L2 cache" : "");
}

extern const Implementation<Conv2dArrays> hopper_weight_stationary = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
