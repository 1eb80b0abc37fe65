/// @file swap_ab.cu
/// @brief Swap-AB for layers of 64 filters: filters are the rows of `wgmma`, and pixels its
/// columns.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** `wgmma` has 64 rows and up to 256 columns, and reads both operands from shared
/// memory. Pixels as rows and 64 filters as columns fill a quarter of it: each 64 pixels read the
/// filters again. With filters as rows and pixels as columns one instruction multiplies 256 pixels.
/// Both tiles have rows along k already, so that only the two descriptors change places:
///
///     pixels as rows       2 x (64 x 64):  2 + 2 KB read for 32 cycles of the tensor cores
///     filters as rows         64 x 256:    2 + 8 KB read for 128
///
/// A tile of 64 rows belongs to one warpgroup. The two take the tiles alternately: one stores its
/// tile while the other multiplies the next one, whose stages follow in the ring. A barrier tells
/// it when to begin, because a wait for a stage tells even phases from odd ones, and no more. The
/// accumulators are [filter][pixel], and y is [pixel][filter]: they are rounded into shared memory
/// with TMA's swizzle against bank conflicts, and stored as rows of 16 bytes per thread.
///
/// **Expect.** With the bytes that TMA writes, 160 bytes of shared memory per cycle instead of 219,
/// of 128 that there are: at most 80 % of the tensor cores' peak instead of 58 %. B4 has 392 tiles
/// for 132 SMs, three waves: 15 us; B9 90 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * 9 = 18, one tile of 256 pixels
/// @expect bytes_per_lane.shared.async (256 + 64) * 64 * 2 / 2 = 20480
/// @expect bytes_per_lane.shared.load 16, eight filters of a pixel, transposed
/// @expect bytes_per_lane.y.store 16, the same
/// @expect sectors_per_request.y.store 32 * 16 / 32 = 16, whole ones
/// **Costs.** 64 KB of shared memory for two staging buffers. Late layers have too few tiles of 256
/// pixels, and split-K is not supported. Not supported: as before.
/// **Try.** Let both warpgroups share a tile, 128 pixels each, and count bytes per cycle again.
/// Which layers gain, because their last wave of tiles is nearly empty?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPixels = 256, kFilters = 64;  ///< Of a tile.
constexpr int kStages = 4;                   ///< A power of 2: positions in the ring may wrap.
using Tile = gemm::WgmmaShape<kPixels, kFilters, kStages, 1>;  ///< Of the stages.
/// Bytes of a tile of accumulators, one for each warpgroup.
constexpr int kStagingBytes = kPixels * kFilters * 2;

/// y [N][P][Q][K], where the sums go.
template <class T>
struct FilterRows {
  T* y;                       ///< [pixels][K]
  const float* bias;          ///< [K], or null
  Windows windows;            ///< what there is to compute
  FilterTiles<Tile> filters;  ///< of the tiles
  bool vectors;               ///< eight filters can be stored at once

  /// Stores a warpgroup's tile of accumulators [filter][pixel] by way of `staging`
  /// [kPixels][kFilters].
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&accumulators)[kPixels / 2], T* staging) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int k = filters.first(item.n);
    const int count = (filters.group(item.n) + 1) * filters.group_k - k;  // to the group's end
    const int filter = thread / 32 * 16 + lane / 4;                       // and the one 8 below
    float added[2];
    T* to[2][2];  // of the even and the odd pixel of a pair
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = filter + 8 * below;
      added[below] = bias != nullptr && row < count ? bias[k + row] : 0.0f;
#pragma unroll
      for (int odd = 0; odd < 2; ++odd)
        to[below][odd] = staging + gemm::swizzled_half(lane % 4 * 2 + odd, row);
    }
    // All threads have read the staging buffer: it may be overwritten.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int i = 0; i < kPixels / 2; ++i) {
      const int below = i / 2 % 2, first = i / 4 * 8;  // of eight pixels, which lie in as many rows
      to[below][i % 2][first * kFilters] =
          rounded_to<T>(activated(windows.activation, accumulators[i] + added[below]));
    }
    ptx::named_barrier_sync(1 + consumer, 128);  // separates these stores from the loads below
    const int column = thread % 8 * 8;
    for (int row = thread / 8; row < kPixels; row += 128 / 8) {
      const std::int64_t pixel = item.m * kPixels + row;
      if (pixel >= windows.pixels() || column >= count) break;
      const T* const from = staging + gemm::swizzled_half(row, column);
      T* const there = y + pixel * windows.K + k + column;
      if (vectors) {
        *reinterpret_cast<uint4*>(there) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int i = 0; i < 8 && column + i < count; ++i) there[i] = from[i];
      }
    }
  }
};

/// Sums over windows: one warp, the producer, loads the steps' pixels and filters from `operands`;
/// the others, two consumer warpgroups, compute the tiles alternately. Operands: TmaOperands or
/// GatheredOperands. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class T, class Operands>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_swap_ab(const __grid_constant__ Operands operands, WgmmaWork work,
                          gemm::WgmmaPlaces places, FilterRows<T> result) {
  // full: the stage has arrived; empty: all four warps of its consumer have read it; multiplied:
  // a consumer's tile, so that the next stages are the other's.
  __shared__ std::uint64_t full[kStages], empty[kStages], multiplied[gemm::kConsumers];
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], 4);
    }
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const int consumer = thread / 128, producer = gemm::kConsumers;
  if (consumer == producer && lane != 0 && !Operands::kWholeWarp) return;
  T* const staging = reinterpret_cast<T*>(stages + kStages * Tile::kStageBytes +
                                          consumer % producer * kStagingBytes);
  unsigned tiles = 0;  // tiles of this block that came before
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    const unsigned before = tiles++;
    const unsigned first = before * static_cast<unsigned>(work.steps);  // the tile's first position
    const bool mine = static_cast<int>(before % gemm::kConsumers) == consumer;
    if (consumer == producer) {
      auto cursor = operands.at(item);
      for (unsigned at = first; at != first + static_cast<unsigned>(work.steps); ++at) {
        // Waits until the consumer has read the stage's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&empty[at % kStages], (at / kStages & 1) ^ 1);
        char* a = stages + at % kStages * Tile::kStageBytes;
        operands.load(cursor, a, a + Tile::kBytesA, &full[at % kStages]);
        operands.advance(cursor);
      }
    } else if (mine) {
      float accumulators[kPixels / 2];
#pragma unroll
      for (int j = 0; j < kPixels / 2; ++j) accumulators[j] = 0.0f;
      // Waits for the other consumer's wgmma. The parity of `full` cannot tell this tile's phase of
      // a stage from the phase two earlier.
      if (before > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (before - 1) / 2 & 1);
      for (unsigned at = first; at != first + static_cast<unsigned>(work.steps); ++at) {
        ptx::mbarrier_wait(&full[at % kStages], at / kStages & 1);
        const char* pixels = stages + at % kStages * Tile::kStageBytes;
        const std::uint64_t rows = ptx::wgmma_descriptor(pixels + Tile::kBytesA);
        const std::uint64_t columns = ptx::wgmma_descriptor(pixels);
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kHalfStep; k += 16) {
          // Descriptors count in units of 16 bytes.
          wgmma_half<kPixels, T>(accumulators, rows + k / 8, columns + k / 8);
        }
        ptx::wgmma_commit_group();
        // Waits for the wgmma of the previous step: its stage may be overwritten.
        ptx::wgmma_wait_group<1>();
        if (at != first && lane == 0) ptx::mbarrier_arrive(&empty[(at - 1) % kStages]);
      }
      if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
      ptx::wgmma_wait_group<0>();
      if (lane == 0) {
        ptx::mbarrier_arrive(&empty[(first + static_cast<unsigned>(work.steps) - 1) % kStages]);
      }
      result.store(item, consumer, accumulators, staging);
    }
  }
}

/// Whether TMA can load the operands, if they are aligned to 16 bytes.
bool fits_tma(const HalfProduct& product) {
  return product.rows_for_tma() && fits_im2col(product.windows);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map == TileMap::split_k || conv.map == TileMap::stream_k)
    return text("the map ", name_of(conv.map), ": sums are not cut into parts");
  return why_no_tile_map(forward_product_of(conv).windows);
}

template <class T, class Operands>
void launch_product(const Operands& operands, const Windows& windows, const FilterRows<T>& result) {
  const WgmmaWork work = work_of<Tile>(windows, 1);
  const gemm::WgmmaPlaces places(work);
  launch(conv2d_hopper_swap_ab<T, Operands>,
         {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(gemm::kWgmmaThreads),
          Tile::kSharedBytes + gemm::kConsumers * kStagingBytes},
         operands, work, places, result);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const HalfProduct product = forward_product_of(conv);
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    T* const y = arrays.y;
    const FilterTiles<Tile> filters(windows);
    const bool vectors = filters.group_k % 8 == 0 && gemm::begin_at_16_bytes(y, y);
    const FilterRows<T> result = {y, arrays.bias, windows, filters, vectors};
    if (fits_tma(product) && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(half_tma_operands<Tile, false>(product, words_of(x), words_of(weights)),
                     windows, result);
    } else {
      launch_product(GatheredOperands<Tile, T>{.pixels = {x, windows, product.group_c},
                                               .weights = weights,
                                               .weights_layout = Layout::nhwc,
                                               .filters = filters,
                                               .filter_taps = 0,
                                               .taps = {}},
                     windows, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(dtype_name(conv.dtype, conv.precision),
              fits_tma(forward_product_of(conv)) ? ", by TMA" : ", by a warp",
              conv.K / conv.groups % 8 == 0 ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_swap_ab = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
