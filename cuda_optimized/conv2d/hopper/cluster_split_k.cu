/// @file cluster_split_k.cu
/// @brief Split-K over a cluster: two blocks compute half of the channels of a tile each, and
/// exchange accumulators.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** B7 (32x512x7x7, 512 filters 3x3) has 64 tiles of 64 filters by four images, and an
/// H200 has 132 SMs. halo_tile.cu gives each SM two images, half a tile; a tap's weights then serve
/// half as many products, and the L2 cache supplies most bytes twice. Here the two blocks of a
/// cluster compute the same tile, each over half of the channels. Each sends the half of its
/// accumulators that the other one stores, by `st.async` to distributed shared memory:
///
///     block 0   channels   0 ... 255   columns 112 ... 223  ->  shared memory of block 1
///     block 1   channels 256 ... 511   columns   0 ... 111  ->  shared memory of block 0
///
/// `st.async` also counts the bytes at a barrier there. The accumulators have 28 KB of their own
/// beside the stages, so a block waits for only these bytes. Each result is a sum of two elements,
/// and addition is commutative.
///
/// **Expect.** A block has 36 steps of 448 cycles, as B6 has in halo_tile.cu (13.5 us), and 28 KB
/// from SM to SM take 2400 cycles at 12 bytes per cycle: B7 15.5 us.
/// @expect on --n 4 --c 128 --h 7 --w 7 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) + 2 * 4 * 14 = 132, boxes of two blocks, and sums
/// @expect launches 1
/// @expect blocks 2, a cluster
/// **Costs.** Shared memory: fewer taps are in flight. Not supported: sums over 64 channels or
/// fewer. Problems with many tiles are faster without clusters.
/// **Try.** Two blocks of different filters load the same patches. Which cluster would share both
/// patches and sums?
#include "core/conv2d_problem.hpp"
#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/hopper/cluster_split_k.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_stages.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kHalfTileColumns = 112;  ///< Of a tile's columns, those that a block stores.
constexpr int kSharedColumns = 2 * kHalfTileColumns;  ///< Of a tile.
constexpr int kSumThreads = 128;                      ///< A warpgroup, which multiplies.
constexpr int kPairEights = kHalfTileColumns / 8;     ///< Of columns, that a block sends.
/// Of what a block sends, and of its place in the other one's shared memory.
constexpr int kPairBytes = kPairEights * kSumThreads * 16;

/// The plan with the fewest tiles of kSharedColumns, with room for what comes from the other block,
/// where others have staging buffers; without patches if none fits.
PatchPlan pair_plan(const Windows& windows) {
  static_assert(kPairBytes % gemm::kConsumers == 0);
  PatchPlan best;
  for (const PatchTiles& tiles :
       {strips_of(windows, kSharedColumns), rows_of(windows, kSharedColumns),
        images_of(windows, kSharedColumns)}) {
    PatchPlan plan = plan_with(windows, tiles, 1, kPairBytes / gemm::kConsumers);
    plan.stay = false;  // there is no other tile
    const bool is_better =
        best.patches == 0 || tiles.count(windows.N) < best.tiles.count(windows.N);
    if (plan.patches > 0 && is_better) best = plan;
  }
  return best;
}

/// Why two blocks do not share the accumulators of each tile, if so.
Declined why_no_pairs(const Windows& windows) {
  if (windows.pixels() == 0) return {};
  if (windows.chunks() < 2) return "sums over 64 channels at most: one patch, nothing to share";
  const PatchPlan plan = pair_plan(windows);
  if (const Declined why = why_no_patches(windows, plan)) return why;
  const std::int64_t blocks = 2 * plan.tiles.count(windows.N) * filter_tiles_of(windows, 1);
  if (blocks <= INT32_MAX) return {};
  return text(how_many(blocks / 2, "tile"), ", with two blocks each: at most ", INT32_MAX,
              " blocks");
}

/// Sums on their way to the block that stores them, as the registers of those who multiplied hold
/// them: [8 columns][thread of a warpgroup][4 accumulators].
struct PairExchange {
  float4* received;        ///< what the other block has sent, and at the same place there
  std::uint64_t* arrived;  ///< its barrier, which expects kPairBytes

  /// Sends a warpgroup's accumulators of the half of the columns that it does not keep.
  template <int kKept>
  __device__ void send(const float (&of)[kSharedColumns / 2]) const {
    constexpr int kSent = (1 - kKept) * kPairEights;
    const unsigned to = ptx::mapa(received + threadIdx.x, 1 - kKept);
    const unsigned barrier = ptx::mapa(arrived, 1 - kKept);
#pragma unroll
    for (int i = 0; i < kPairEights; ++i) {
      const float* const four = of + 4 * (kSent + i);
      ptx::st_async(to + static_cast<unsigned>(i * kSumThreads * 16),
                    {four[0], four[1], four[2], four[3]}, barrier);
    }
  }
  /// The sums of the columns that it keeps, with what the other block has sent.
  template <int kKept>
  __device__ void add(const float (&of)[kSharedColumns / 2],
                      float (&whole)[kHalfTileColumns / 2]) const {
    ptx::mbarrier_wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < kPairEights; ++i) {
      const float4 sent = received[i * kSumThreads + static_cast<int>(threadIdx.x)];
      const float* const four = of + 4 * (kKept * kPairEights + i);
      whole[4 * i] = four[0] + sent.x;
      whole[4 * i + 1] = four[1] + sent.y;
      whole[4 * i + 2] = four[2] + sent.z;
      whole[4 * i + 3] = four[3] + sent.w;
    }
  }
};

constexpr int kPairThreads = kSumThreads + 32;  ///< Of a block; one warp is the producer.

/// Sums over windows: a warpgroup multiplies, and one warp, the producer, loads patches and taps.
/// Patches: TmaPatches or GatheredPatches, Taps likewise.
/// Grid: 2 work.items, in clusters of two; block kPairThreads; work.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(kPairThreads, 1)
    conv2d_hopper_cluster_split_k(const __grid_constant__ Patches patches,
                                  const __grid_constant__ Taps taps,
                                  const __grid_constant__ PatchWork work,
                                  const __grid_constant__ PatchResult<T> result) {
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t sums_arrived;  // from the other block
  PatchStages<> stages(work, barriers);
  const PairExchange exchange = {reinterpret_cast<float4*>(stages.behind), &sums_arrived};
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    ptx::mbarrier_init(&sums_arrived, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&sums_arrived, kPairBytes);
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
  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const bool is_producer = __shfl_sync(~0u, thread / kSumThreads, 0) != 0;
  if (is_producer) {
    if (lane == 0 || Taps::kWholeWarp) stages.load(patches, taps, tile, filters, first, last);
    return;
  }
  float accumulators[kSharedColumns / 2];
#pragma unroll
  for (float& sum : accumulators) sum = 0.0f;
  // for each tap and 64 channels c:
  //   accumulators[filter][p, q] += weights[filter][c] * patch[p + r * dilation.h][q + ...][c]
  stages.for_each_tap(tiles, first, last, [&](const char* weights, std::uint64_t columns) {
    multiply_tap<Taps::kTransposed, kSharedColumns, T>(accumulators, weights, columns);
  });
  ptx::wgmma_wait_group<0>();   // no one waits for the last slots
  ptx::barrier_cluster_wait();  // separates the other block's barrier's initialisation from its use
  half == 0 ? exchange.send<0>(accumulators) : exchange.send<1>(accumulators);
  float whole[kHalfTileColumns / 2];
  half == 0 ? exchange.add<0>(accumulators, whole) : exchange.add<1>(accumulators, whole);
  ptx::named_barrier_sync(
      1,
      kSumThreads);  // separates all products from the staging buffer in their place
  T* const staging = reinterpret_cast<T*>(stages.patch_slots);
  result.template round<kHalfTileColumns>(filters, whole, staging);
  ptx::named_barrier_sync(1, kSumThreads);  // separates these stores from all reads
  result.store_columns(tiles, tile, filters, half * kHalfTileColumns, kHalfTileColumns, staging);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_no_cluster_split_k(forward_product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  launch_cluster_split_k(
      forward_product_of(conv),
      {.source = arrays.x, .weights = arrays.weights, .bias = arrays.bias, .out = arrays.y});
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return cluster_split_k_in_words(forward_product_of(conv));
}

}  // namespace

Declined why_no_cluster_split_k(const HalfProduct& product) {
  return why_no_pairs(product.windows);
}

void launch_cluster_split_k(const HalfProduct& product, const HalfArrays& arrays) {
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  with_half_type(product.dtype, [&]<class T>(T) {
    const PatchWork work(windows, pair_plan(windows));
    const auto result = patch_result<T>(windows, work.plan.tiles, arrays.bias, arrays.out);
    with_halo_operands<T>(
        product, arrays, work, [&]<class PatchesOf, class Taps>(PatchesOf patches_of, Taps taps) {
          const auto patches = patches_of(work);
          launch_in_clusters(
              2, conv2d_hopper_cluster_split_k<T, std::decay_t<decltype(patches)>, Taps>,
              {static_cast<unsigned>(2 * work.items), kPairThreads, work.plan.shared_bytes()},
              patches, taps, work, result);
        });
  });
}

std::string cluster_split_k_in_words(const HalfProduct& product) {
  if (product.windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(product.dtype, Precision{}), ", ",
              tiles_in_words(pair_plan(product.windows).tiles), operands_in_words(product));
}

extern const Implementation<Conv2dArrays> hopper_cluster_split_k = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
