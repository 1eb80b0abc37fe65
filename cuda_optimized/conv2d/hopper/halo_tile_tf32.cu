/// @file halo_tile_tf32.cu
/// @brief Halo-tile reuse in TF32: accumulators are stored from registers, without a staging
/// buffer.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A pixel's 128 bytes hold 32 floats, so that 64 channels are two chunks of two
/// patches, and a tile of 64 filters has 18 chunks of weights of 8 KB, 144 KB. They stay only if
/// nothing else needs room but two patches: the staging buffers have to go. Half precision needs
/// them, because eight lanes have accumulators of eight neighbouring filters of a pixel, and eight
/// half-precision elements are half a sector. *Eight floats are a whole sector*:
///
///     accumulators [filter][pixel] of a warp     lane / 4: filter     lane % 4: two pixels
///     one store of all lanes                     8 filters x 4 bytes of 4 pixels = 4 sectors
///
/// So each thread stores from registers, and shared memory holds operands alone. TMA rounds both to
/// TF32. With one tap, a tile is little more than its stores: there, tiles have 128 filters by 128
/// pixels, in an order in which a lane's four accumulators of a pixel are neighbours
/// (shared/halo/filters_in_fours.cuh), and a store is 128 bytes of each of 4 pixels.
///
/// **Expect.** Twice the cycles of half precision for a tile, 8064, in which two patches of 38 KB
/// are loaded: 10 bytes per cycle again. B4 24 us, of which 18 us at the tensor cores' peak; B9 175
/// us (145 us at the peak, 98 us of DRAM). B5, B8 and B15 write 103, 51 and 1644 MB, and half of
/// the tiles load their pixels half as often: 36, 26 and 480 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect requests.shared.async 2 * (2 + 18) = 40, two blocks: two patches, and 18 taps
/// @expect sectors_per_request.y.store 4, whole ones
/// @expect bytes_per_lane.y.store 4, a sum
/// **Costs.** As before. With more than 64 channels weights are loaded for each tile. Stores of
/// four filters need groups of multiples of 32 filters.
/// **Try.** What would a staging buffer of half a tile, 32 filters at a time, cost and save here?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/filters_in_fours.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_stages.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows: one warp, the producer, loads patches and taps; the others, two consumer
/// warpgroups, take the tiles alternately. kBlocks: of filters in a tile. Patches: TmaPatches or
/// GatheredPatches, Taps likewise. Grid: <= work.blocks(); block gemm::kWgmmaThreads;
/// work.plan.shared_bytes().
template <int kBlocks, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_halo_tile_tf32(const __grid_constant__ Patches patches,
                                 const __grid_constant__ Taps taps,
                                 const __grid_constant__ PatchWork work, FloatPixels result) {
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
  }
  PatchStages<1, kBlocks * kTapBytes> stages(work, barriers);
  stages.template prepare<gemm::kWgmmaThreads>();

  const PatchPlan& plan = work.plan;
  const int chunks = work.windows.chunks();
  const auto tile_of = [&](unsigned item) { return tile_at(plan.tiles, item / work.filter_tiles); };
  const auto filters_of = [&](unsigned item) {
    return filters_at(work.windows, item % work.filter_tiles, kBlocks);
  };
  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      stages.load(patches, taps, tile_of(item), filters_of(item), 0, chunks,
                  is_first || !plan.stay);
    }
    return;
  }

  int before = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++before) {
    if (before % gemm::kConsumers != consumer) {
      stages.skip();
      continue;
    }
    float accumulators[kBlocks][kColumns / 2];
#pragma unroll
    for (auto& block : accumulators) {
#pragma unroll
      for (float& sum : block) sum = 0.0f;
    }
    // Without it, a patch of the tile before, two phases earlier, would look like this one's.
    if (before > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (before - 1) / 2 & 1);
    // for each tap and 32 channels c:
    //   accumulators[filter][p, q] += weights[filter][c] * patch[p + r * dilation.h][q + ...][c]
    stages.for_each_tap(plan.tiles, 0, chunks, [&](const char* weights, std::uint64_t columns) {
      const std::uint64_t rows = ptx::wgmma_descriptor(weights);
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < kBlocks; ++i)  // descriptors count in units of 16 bytes
          ptx::wgmma_m64k8_tf32<kColumns>(accumulators[i], rows + i * (kTapBytes / 16) + k / 4,
                                          columns + k / 4, true);
      }
    });
    if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
    stages.finish();
    result.store<kColumns>(plan.tiles, tile_of(item), filters_of(item), accumulators);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_tf32_windows(conv)) return why;
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  const Windows windows = forward_windows(conv);
  return why_no_patches(windows, patch_plan(windows, 0));
}

template <int kBlocks, int kColumns, class Patches, class Taps>
void launch_product(const Patches& patches, const Taps& taps, const PatchWork& work,
                    const FloatPixels& result) {
  launch(conv2d_hopper_halo_tile_tf32<kBlocks, kColumns, Patches, Taps>,
         {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
          work.plan.shared_bytes()},
         patches, taps, work, result);
}

/// Whether TMA can load the operands, if they are aligned to 16 bytes.
bool rows_for_tma(const Conv2dProblem& conv) { return conv.C / conv.groups % 4 == 0; }

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = forward_windows(conv);
  if (windows.pixels() == 0) return;
  const float *x = arrays.x, *weights = arrays.weights;
  float* const y = arrays.y;
  const PatchWork work(windows, patch_plan(windows, 0));
  const int group_c = conv.C / conv.groups;
  const FloatPixels result = {.out = y,
                              .bias = arrays.bias,
                              .activation = conv.activation,
                              .P = conv.P,
                              .Q = conv.Q,
                              .K = conv.K,
                              .fours = gemm::begin_at_16_bytes(y, y)};
  const bool by_tma =
      rows_for_tma(conv) && work.has_pixels() && gemm::begin_at_16_bytes(x, weights);
  const bool tall = work.plan.filter_blocks == 2;
  const auto launch_tall = [&](const auto& patches, const auto& taps) {
    launch_product<2, kTallColumns>(patches, taps, work, result);
  };
  const auto launch_usual = [&](const auto& patches, const auto& taps) {
    with_columns<false>(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
      launch_product<1, kColumns>(patches, taps, work, result);
    });
  };
  if (by_tma && tall) {
    launch_tall(tma_patches(work, x), tma_fours(windows, weights));
  } else if (by_tma) {
    launch_usual(tma_patches(work, x),
                 TmaTaps<>{tensor_map(weights_map(windows, kPatchFilters), weights),
                           conv.S,
                           conv.K / conv.groups,
                           {}});
  } else if (tall) {
    launch_tall(gathered_patches(work, x, group_c), GatheredFours{weights, group_c});
  } else {
    launch_usual(
        gathered_patches(work, x, group_c),
        GatheredTaps<float>{weights, conv.R, conv.S, group_c, conv.K / conv.groups, 0, {}});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(patch_plan_in_words(forward_windows(conv), 0),
              rows_for_tma(conv) ? ", by TMA" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_halo_tile_tf32 = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
