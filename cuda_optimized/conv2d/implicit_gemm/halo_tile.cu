/// @file halo_tile.cu
/// @brief Halo-tile reuse: each pixel is loaded once for all taps, in half precision.
///
/// - Before: warp_specialized.cu
/// - After: hopper/cluster_split_k.cu, hopper/full_tiles.cu, hopper/weight_stationary.cu,
///   hopper/halo_tile_tf32.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The previous rung loads each pixel once for every tap. The L2 cache limits it: an
/// SM gets 36 bytes per cycle, and a step of 64 x 256 needs 80. But the pixels of nine taps are one
/// *halo tile* (in the code: patch), each time shifted. It is loaded once. Its pixels follow one
/// another in shared memory, so that *a tap is an address*:
///
///     patch of 10 x 6, tile of 8 x 4     tap (0, 0)     tap (0, 1)     tap (2, 2)
///     . . . . . . . . . .                ########..     .########      ..........
///     . . . . . . . . . .   6 rows       ########..     .########      ..########   ...
///
/// The columns of `wgmma` are pixels, in groups of 8 as far apart as its descriptor says: a row of
/// the patch. The swizzle follows the bits of the address, so that a tile may begin at any pixel.
/// Tiles are strips, whole rows or whole images (shared/halo/halo_plan.cuh). Weights of a tap have
/// a ring of their own; if they all fit, they stay. Accumulators are rounded, transposed by
/// `stmatrix`, and stored by TMA during the next tile.
///
/// **Expect.** B4, tiles of 8 x 28 pixels: 38 KB per 4032 cycles, 10 bytes per cycle. 448 tiles are
/// four waves of 132 SMs, 9 us at the peak: 13 us. B9 has 27 waves, 64 us, and 49 us of DRAM: 85
/// us. B10 loads 1.7 GB instead of 2.8, with 6 % padding columns: 310 us. B5 20, B6 14, B7 16, B8
/// 15 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch, weights of nine taps
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** Few small images fill no tile, and split-K is not supported. Not supported: strides
/// of filters larger than 1 x 1, filters whose halo tile does not fit, tile maps, and as before.
/// **Try.** How many bytes per cycle do 1 x 1 filters load? Let two tiles of filters share a patch.
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/implicit_gemm/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows. One warp, the producer, loads patches and taps; the others, two consumer
/// warpgroups, take the tiles alternately.
/// Patches: TmaPatches or GatheredPatches, Taps likewise.
/// Grid: <= work.blocks(); block gemm::kWgmmaThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_implicit_gemm_halo_tile(const __grid_constant__ Patches patches,
                                   const __grid_constant__ Taps taps,
                                   const __grid_constant__ PatchWork work,
                                   const __grid_constant__ PatchResult<T> result) {
  // full: patch or tap has arrived; empty: all four warps of its consumer have read it;
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const PatchPlan& plan = work.plan;
  const PatchTiles& tiles = plan.tiles;
  const Windows& windows = work.windows;
  char* tap_slots = dynamic_shared<char>();
  tap_slots += (gemm::kAtom - ptx::shared_address(tap_slots) % gemm::kAtom) % gemm::kAtom;
  char* const patch_slots = tap_slots + plan.tap_slots * kTapBytes;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < plan.patches; ++i) {
      ptx::mbarrier_init(&barriers.full_patch[i], 1);
      ptx::mbarrier_init(&barriers.empty_patch[i], 4);
    }
    for (int i = 0; i < plan.tap_slots; ++i) {
      ptx::mbarrier_init(&barriers.full_tap[i], 1);
      ptx::mbarrier_init(&barriers.empty_tap[i], 4);
    }
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
    ptx::fence_mbarrier_init();
  }
  zero_behind_boxes<gemm::kWgmmaThreads>(plan, patch_slots);
  __syncthreads();  // separates both from all that follows

  const int chunks = windows.chunks();
  Ring patch{plan.patches}, tap{plan.tap_slots};  // the position of this warp
  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      const PatchTile tile = tile_at(tiles, item / work.filter_tiles);
      const PatchFilters filters = filters_at(windows, item % work.filter_tiles);
      for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
        // Waits until the consumer has read the slot's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&barriers.empty_patch[patch.slot], patch.phase ^ 1);
        // patch[h][w][c] = source[n][tile.p + first.h + h][tile.q + first.w + w][64 chunk + c],
        // of all pixels that the windows of the tile touch; zeros outside the image
        patches.load({.group = filters.group,
                      .chunk = chunk,
                      .w = tile.q + work.first.w,
                      .h = tile.p + work.first.h,
                      .n = tile.n},
                     patch_slots + patch.slot * plan.patch_bytes, &barriers.full_patch[patch.slot]);
        if (plan.stay && !is_first) continue;
        // Coordinates advance without divisions: for a single thread, these take longer than the
        // wgmma of a tap.
        for (int r = 0; r < windows.R; ++r) {
          for (int s = 0; s < windows.S; ++s, tap.step()) {
            ptx::mbarrier_wait(&barriers.empty_tap[tap.slot], tap.phase ^ 1);
            // tap[j][c] = weights[filters.first + j][r][s][64 chunk + c] of 64 filters j
            taps.load(filters, {r, s}, chunk, tap_slots + tap.slot * kTapBytes,
                      &barriers.full_tap[tap.slot]);
          }
        }
      }
    }
    return;
  }

  T* const staging = reinterpret_cast<T*>(patch_slots + plan.patches * plan.patch_bytes +
                                          consumer * plan.staging_bytes);
  int before = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++before) {
    if (before % gemm::kConsumers != consumer) {  // the other consumer's tile
      patch.skip(chunks);
      if (!plan.stay) tap.skip(chunks * windows.R * windows.S);
      continue;
    }
    float accumulators[kColumns / 2];
#pragma unroll
    for (float& accumulator : accumulators) accumulator = 0.0f;
    // Waits for the other consumer's wgmma. The parity of `full` cannot tell this tile's phase of a
    // slot from the phase two earlier.
    if (before > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (before - 1) / 2 & 1);
    int read_patch = -1, read_tap = -1;  // slots that have been read when the last wgmma are
                                         // complete
    const auto release = [&] {
      if (lane != 0) return;
      if (read_patch >= 0) ptx::mbarrier_arrive(&barriers.empty_patch[read_patch]);
      if (read_tap >= 0) ptx::mbarrier_arrive(&barriers.empty_tap[read_tap]);
    };
    for (int chunk = 0; chunk < chunks; ++chunk, patch.step()) {
      ptx::mbarrier_wait(&barriers.full_patch[patch.slot], patch.phase);
      const std::uint64_t first_columns = ptx::wgmma_descriptor(
          patch_slots + patch.slot * plan.patch_bytes, tiles.group * kPixelBytes);
      for (int r = 0; r < windows.R; ++r) {
        for (int s = 0; s < windows.S; ++s, tap.step()) {
          // Stationary weights arrive in phase 0 only.
          ptx::mbarrier_wait(&barriers.full_tap[tap.slot], plan.stay ? 0 : tap.phase);
          ptx::wgmma_fence();
          // for each filter j, pixel (p, q) of the tile, and channel c of the 64:
          //   accumulators[j][p, q] += tap[j][c] * patch[p + r * dilation.h][q + s * dilation.w][c]
          multiply_tap<Taps::kTransposed, kColumns, T>(
              accumulators, tap_slots + tap.slot * kTapBytes,
              first_columns + tap_offset(windows, tiles, r, s));
          ptx::wgmma_commit_group();
          ptx::wgmma_wait_group<1>();  // all but this tap's wgmma are complete
          release();
          read_tap = plan.stay ? -1 : tap.slot;
          read_patch = r == windows.R - 1 && s == windows.S - 1 ? patch.slot : -1;
        }
      }
    }
    if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
    ptx::wgmma_wait_group<0>();
    release();
    // out[n][tile.p + p][tile.q + q][j] = activation(accumulators[j][p, q] + bias[j])
    result.template store<kColumns>(tiles, tile_at(tiles, item / work.filter_tiles),
                                    filters_at(windows, item % work.filter_tiles), consumer,
                                    accumulators, staging);
  }
  result.finish();
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_no_halo_tile(forward_product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  launch_halo_tile(
      forward_product_of(conv),
      {.source = arrays.x, .weights = arrays.weights, .bias = arrays.bias, .out = arrays.y});
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return halo_tile_in_words(forward_product_of(conv));
}

}  // namespace

Declined why_no_halo_tile(const HalfProduct& product) {
  return why_no_patches(product.windows, patch_plan(product.windows, kPixelBytes));
}

void launch_halo_tile(const HalfProduct& product, const HalfArrays& arrays) {
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  with_half_type(product.dtype, [&]<class T>(T) {
    const PatchWork work(windows, patch_plan(windows, kPixelBytes));
    const auto result = patch_result<T>(windows, work.plan.tiles, arrays.bias, arrays.out);
    with_halo_operands<T>(
        product, arrays, work, [&]<class PatchesOf, class Taps>(PatchesOf patches_of, Taps taps) {
          with_columns<true>(work.plan.tiles.columns, [&]<int kColumns>(Columns<kColumns>) {
            const auto patches = patches_of(work);
            launch(
                conv2d_implicit_gemm_halo_tile<T, kColumns, std::decay_t<decltype(patches)>, Taps>,
                {dim3(blocks_for(work.items, 1, work.blocks())), dim3(gemm::kWgmmaThreads),
                 work.plan.shared_bytes()},
                patches, taps, work, result);
          });
        });
  });
}

std::string halo_tile_in_words(const HalfProduct& product) {
  return text(dtype_name(product.dtype, Precision{}), ", ",
              patch_plan_in_words(product.windows, kPixelBytes), operands_in_words(product));
}

extern const Implementation<Conv2dArrays> implicit_gemm_halo_tile = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
