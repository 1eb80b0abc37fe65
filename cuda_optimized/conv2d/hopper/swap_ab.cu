/// @file swap_ab.cu
/// @brief conv2d on Hopper in 16 bits, for layers of 64 filters: the factors change places.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** `wgmma` has 64 rows and up to 256 columns, and reads both factors from shared
/// memory. Pixels as rows and 64 filters as columns fill a quarter of it: each 64 pixels read the
/// filters again. With filters as rows and pixels as columns one instruction takes 256 pixels. Both
/// tiles have rows along k already, so that only the two descriptors change places:
///
///     pixels as rows       2 x (64 x 64):  2 + 2 KB read for 32 cycles of the tensor cores
///     filters as rows         64 x 256:    2 + 8 KB read for 128
///
/// A tile of 64 rows is one warpgroup's alone. So the two take turns: one stores its tile while the
/// other multiplies the next one, whose stages follow in the ring. It has to be told when: a wait
/// for a stage tells even rounds from odd ones, no more. The sums arrive as [filter][pixel], and y
/// wants [pixel][filter]: they are rounded into shared memory, permuted as TMA would do
/// it against bank conflicts, and leave as rows of 16 bytes a thread.
///
/// **Expect.** With the bytes that TMA writes, 160 bytes of shared memory a cycle where
/// it were 219, of 128 that there are: at most 80 % of the tensor cores' peak in place of 58. B4
/// has 392 tiles for 132 SMs, three rounds: 15 us; B9 90 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * 9 = 18, one tile of 256 pixels
/// @expect bytes_per_lane.shared.async (256 + 64) * 64 * 2 / 2 = 20480
/// @expect bytes_per_lane.shared.load 16, eight filters of a pixel, transposed
/// @expect bytes_per_lane.y.store 16, the same
/// @expect sectors_per_request.y.store 32 * 16 / 32 = 16, whole ones
/// **Costs.** 64 KB of shared memory for two tiles of sums. Late layers have too few tiles of 256
/// pixels, and sums are not cut into parts. Declined: as before.
/// **Try.** Let both warpgroups share a tile, 128 pixels each, and count bytes a cycle again. Which
/// layers gain, because their last round of tiles is nearly empty?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPixels = 256, kFilters = 64;  ///< Of a tile.
constexpr int kStages = 4;                   ///< A power of 2: positions in the ring may wrap.
using Tile = gemm::WgmmaShape<kPixels, kFilters, kStages, 1>;  ///< Of the stages.
/// Bytes of a tile of sums, one for each warpgroup.
constexpr int kDraftBytes = kPixels * kFilters * 2;

/// y [N][P][Q][K], where the sums go.
template <class T>
struct FilterRows {
  T* y;                       ///< [pixels][K]
  const float* bias;          ///< [K], or null
  Windows windows;            ///< what there is to compute
  FilterTiles<Tile> filters;  ///< of the tiles
  bool vectors;               ///< eight filters can be stored at once

  /// Stores a warpgroup's tile of sums [filter][pixel] by way of `draft` [kPixels][kFilters].
  __device__ void store(const WgmmaItem& item, int consumer, const float (&sums)[kPixels / 2],
                        T* draft) const {
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
        to[below][odd] = draft + gemm::swizzled_half(lane % 4 * 2 + odd, row);
    }
    // All have stored what the draft held: it may be overwritten.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int i = 0; i < kPixels / 2; ++i) {
      const int below = i / 2 % 2, first = i / 4 * 8;  // of eight pixels, which lie in as many rows
      to[below][i % 2][first * kFilters] =
          rounded_to<T>(activated(windows.activation, sums[i] + added[below]));
    }
    ptx::named_barrier_sync(1 + consumer, 128);  // separates these stores from the loads below
    const int column = thread % 8 * 8;
    for (int row = thread / 8; row < kPixels; row += 128 / 8) {
      const std::int64_t pixel = item.m * kPixels + row;
      if (pixel >= windows.pixels() || column >= count) break;
      const T* const from = draft + gemm::swizzled_half(row, column);
      T* const there = y + pixel * windows.K + k + column;
      if (vectors) {
        *reinterpret_cast<uint4*>(there) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int i = 0; i < 8 && column + i < count; ++i) there[i] = from[i];
      }
    }
  }
};

/// Sums over windows: one warp, the producer, brings the steps' pixels and filters from `source`;
/// the others, two warpgroups of consumers, take turns at the tiles. Source: Im2colSource or
/// GatheredHalves. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class T, class Source>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_swap_ab(const __grid_constant__ Source source, WgmmaWork work,
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
  if (consumer == producer && lane != 0 && !Source::kWholeWarp) return;
  T* const draft = reinterpret_cast<T*>(stages + kStages * Tile::kStageBytes +
                                        consumer % producer * kDraftBytes);
  unsigned turn = 0;  // tiles of this block that came before
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    const unsigned before = turn++;
    const unsigned first = before * static_cast<unsigned>(work.steps);  // the tile's first position
    const bool mine = static_cast<int>(before % gemm::kConsumers) == consumer;
    if (consumer == producer) {
      auto cursor = source.at(item);
      for (unsigned at = first; at != first + static_cast<unsigned>(work.steps); ++at) {
        // Until the consumer has read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty[at % kStages], (at / kStages & 1) ^ 1);
        char* a = stages + at % kStages * Tile::kStageBytes;
        source.load(cursor, reinterpret_cast<float*>(a),
                    reinterpret_cast<float*>(a + Tile::kBytesA), &full[at % kStages]);
        source.advance(cursor);
      }
    } else if (mine) {
      float sums[kPixels / 2];
#pragma unroll
      for (int j = 0; j < kPixels / 2; ++j) sums[j] = 0.0f;
      // Without it, a stage of the tile before, two rounds earlier, would look like this one's.
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
          wgmma_along_k<kPixels, T>(sums, rows + k / 8, columns + k / 8);
        }
        ptx::wgmma_commit_group();
        // All but this step's products are done: the stage before may be overwritten.
        ptx::wgmma_wait_group<1>();
        if (at != first && lane == 0) ptx::mbarrier_arrive(&empty[(at - 1) % kStages]);
      }
      if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
      ptx::wgmma_wait_group<0>();
      if (lane == 0) {
        ptx::mbarrier_arrive(&empty[(first + static_cast<unsigned>(work.steps) - 1) % kStages]);
      }
      result.store(item, consumer, sums, draft);
    }
  }
}

/// What there is to compute, with channels in words.
Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  windows.map = conv.map;
  return in_words(windows);
}

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv) {
  return in_eights(conv.C / conv.groups) && fits_the_copy_engine(windows_of(conv));
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  switch (conv.map) {
    case TileMap::row_major: return {};  // an order of its own, without a grid
    case TileMap::split_k:
    case TileMap::stream_k:
      return text("the map ", name_of(conv.map), ": sums are not cut into parts");
    default: return why_no_grid(smallest_tiles(windows_of(conv)));
  }
}

template <class T, class Source>
void launch_product(const Source& source, const Windows& windows, const FilterRows<T>& result) {
  const WgmmaWork work = work_of<Tile>(windows, 1);
  const gemm::WgmmaPlaces places(work);
  launch(conv2d_hopper_swap_ab<T, Source>,
         {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(gemm::kWgmmaThreads),
          Tile::kSharedBytes + gemm::kConsumers * kDraftBytes},
         source, work, places, result);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *weights = arrays.weights;
    T* const y = arrays.y;
    const FilterTiles<Tile> filters(windows);
    const bool vectors = in_eights(filters.group_k) && gemm::begin_at_16_bytes(y, y);
    const FilterRows<T> result = {y, arrays.bias, windows, filters, vectors};
    if (by_the_copy_engine(conv) && gemm::begin_at_16_bytes(x, weights)) {
      launch_product(im2col_source<Tile>(windows, words_of(x), words_of(weights)), windows, result);
    } else {
      launch_product(GatheredHalves<Tile, T>{{x, windows, conv.C / conv.groups}, weights, filters},
                     windows, result);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(dtype_name(conv.dtype, conv.precision),
              by_the_copy_engine(conv) ? ", by TMA" : ", by a warp",
              in_eights(conv.K / conv.groups) ? ", filters in eights" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> hopper_swap_ab = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
