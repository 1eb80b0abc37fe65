/// @file wgmma_tile.cuh
/// @brief A matrix product on Hopper's tensor cores, whose operands come from a source that the
/// rungs define; cuda_optimized/gemm/wgmma_tf32.cu explains it.
#pragma once

#include <type_traits>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

inline constexpr int kWgmmaStep = kTensorMapRow;  ///< Of k in a stage: rows of 128 bytes.
inline constexpr int kConsumers = 2;              ///< Warpgroups of 128 threads that multiply.
inline constexpr int kConsumerThreads = 128 * kConsumers;    ///< Of a block.
inline constexpr int kWgmmaThreads = kConsumerThreads + 32;  ///< And one warp that loads.
inline constexpr int kAtom = 1024;  ///< Bytes after which the 128-byte swizzle repeats.

/// The sizes of a kernel: a block's tile, its stages in shared memory, and blocks an SM.
template <int kM, int kN, int kStages_, int kBlocks_>
struct WgmmaShape {
  static constexpr int M = kM,                            ///< rows of a tile
      N = kN,                                             ///< columns of a tile
      kStages = kStages_,                                 ///< of the ring in shared memory
      kBlocks = kBlocks_;                                 ///< resident on an SM at the same time
  static constexpr int kRowTiles = kM / kConsumers / 64;  ///< wgmma tiles of a consumer
  static constexpr int kBytesA = kM * kWgmmaStep * 4,     ///< of a stage's a [M][kWgmmaStep]
      kBytesB = kN * kWgmmaStep * 4;                      ///< of a stage's b [N][kWgmmaStep]
  static constexpr int kStageBytes = kBytesA + kBytesB;   ///< a, then b
  /// Dynamic shared memory of a block: all stages, and room to align them to kAtom.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kAtom;
  static_assert(kM % (64 * kConsumers) == 0, "whole wgmma tiles");
};

/// What there is to compute: tiles, each in `splits` parts of the sum.
struct WgmmaWork {
  std::int64_t tiles_m;  ///< tiles down c, of Shape::M rows
  int tiles_n;           ///< tiles across c, of Shape::N columns
  int splits;            ///< parts of each sum, >= 1
  int steps;             ///< of kWgmmaStep
  int products = 1;      ///< that lie side by side in c, each of tiles_n / products tiles
  /// The order of the tiles of a product; row_major stands for an order of the kernel's own.
  TileMap map = TileMap::row_major;

  /// Parts of tiles: how many WgmmaItem there are.
  HOST_DEVICE std::int64_t items() const { return tiles_m * tiles_n * splits; }
};

/// A part of a tile: steps first ... last - 1.
struct WgmmaItem {
  std::int64_t m;  ///< the tile's row, in tiles
  int n,           ///< the tile's column, in tiles
      split,       ///< which part of the sum, < splits
      first,       ///< its first step, of kWgmmaStep
      last;        ///< one past its last step
};

inline constexpr int kColumnGroup = 8;  ///< Tiles that share a panel of a follow one another.

/// How blocks count the items: the places of work.map's grid, of which some may be empty.
struct WgmmaPlaces {
  tile_map::Walk walk;  ///< of the tiles of a product, unless the order is the kernel's own
  std::int64_t count;   ///< places, those without an item included

  /// Of work under a map that the caller has asked why_no_grid() about.
  explicit WgmmaPlaces(const WgmmaWork& work)
      : walk({.map = work.map,
              .tiles_m = static_cast<int>(work.tiles_m),
              .tiles_n = work.tiles_n / work.products}),
        count(work.map == TileMap::row_major
                  ? work.items()
                  : std::int64_t{walk.plane} * work.products * work.splits) {}
};

/// Finds the item at a place; false: there is none. Blocks that run at the same time have
/// neighbouring numbers, and should read the same rows of a and b: in the kernel's own order, tiles
/// are counted across up to kColumnGroup columns first, then down.
__device__ inline bool item_at(const WgmmaWork& work, const WgmmaPlaces& places, std::int64_t index,
                               WgmmaItem* item) {
  if (work.map == TileMap::row_major) {
    const std::int64_t tiles = work.tiles_m * work.tiles_n;
    item->split = static_cast<int>(index / tiles);
    const std::int64_t tile = index % tiles, group = tile / (work.tiles_m * kColumnGroup);
    const int n0 = static_cast<int>(group) * kColumnGroup;
    const int columns = min(kColumnGroup, work.tiles_n - n0);
    const std::int64_t inside = tile - group * work.tiles_m * kColumnGroup;
    item->m = inside / columns;
    item->n = n0 + static_cast<int>(inside % columns);
  } else {
    const auto place = static_cast<unsigned>(index), plane = place / places.walk.plane;
    tile_map::Tile tile;
    if (!places.walk.tile_at(place % places.walk.plane, &tile)) return false;
    // The order of planes: products, splits.
    const int product = static_cast<int>(plane) % work.products;
    item->split = static_cast<int>(plane) / work.products;
    item->m = tile.m;
    item->n = product * (work.tiles_n / work.products) + tile.n;
  }
  item->first = static_cast<int>(std::int64_t{work.steps} * item->split / work.splits);
  item->last = static_cast<int>(std::int64_t{work.steps} * (item->split + 1) / work.splits);
  return true;
}

/// Where float k of row i of an operand lies in a stage, in floats: its 16-byte pieces are permuted
/// within 128 bytes as the copy engine does it.
HOST_DEVICE constexpr int swizzled(int i, int k) {
  return i * kWgmmaStep + ((k / 4 ^ i % 8) * 4 + k % 4);
}

/// Source: from where operands come.
///   Cursor at(item, step)       where a step of a tile begins; called by the producer warp
///   load(cursor, a, b, barrier) brings a stage: to a [Shape::M][32], to b [Shape::N][32], and
///                               arrives at the barrier. If kWholeWarp, all 32 threads call it.
///   advance(cursor)             to the next step
/// Result: where sums go.
///   Place place(item)           of a tile
///   float* row(place, row)      where a row of c begins in that tile, or null past the last one
///   Pair columns(place, first)  two neighbouring columns of the tile
///   store(pair, row, v0, v1)    writes them, where they are in c
///   whole(place, item)          whether all of the tile is, and float2 can be stored: then
///   store_whole(pair, row, ...) is called instead
/// Grid: <= places.count; block kWgmmaThreads.
template <class Shape, class Source, class Result>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    wgmma_product(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                  Result result) {
  // full: the stage has arrived; empty: all eight consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // of the ring of stages, modulo 2
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, reinterpret_cast<float*>(a),
                    reinterpret_cast<float*>(a + Shape::kBytesA), &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kWgmmaStep * 4);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k8_tf32<Shape::N>(sums[i], a_at + (i * 64 * kWgmmaStep + k) / 4,
                                          b_at + k / 4, true);
        }
      }
      ptx::wgmma_commit_group();
      // All but this step's products are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    const auto place = result.place(item);
    float* rows[Shape::kRowTiles][2];  // of this thread: r and r + 8 of 16
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t row = item.m * Shape::M + consumer * kRows + i * 64 + warp * 16 + lane / 4;
      rows[i][0] = result.row(place, row);
      rows[i][1] = result.row(place, row + 8);
    }
    // Two loops: one without a test for tiles that lie in c as a whole, as most do.
    if (result.whole(place, item)) {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          result.store_whole(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store_whole(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          result.store(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    }
  }
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(wgmma_product<Shape, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads), Shape::kSharedBytes},
         source, work, places, result);
}

/// Why wgmma is not there, if so: it belongs to compute capability 9.0 alone, and later GPUs have
/// other instructions in its place.
inline Declined why_no_wgmma() {
  const int capability = compute_capability();
  if (capability == 90) return {};
  return text("needs wgmma of compute capability 9.0, and this device has ", capability / 10, ".",
              capability % 10);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
