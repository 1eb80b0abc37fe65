/// @file wgmma_tile.cuh
/// @brief Sizes, work and places of products on Hopper's tensor cores; tf32/wgmma.cu explains
/// them.
#pragma once

#include <type_traits>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
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

inline constexpr int kColumnGroup = 8;  ///< Tiles that share a panel of a follow one another.

/// What there is to compute: tiles, each in `splits` parts of the sum.
struct WgmmaWork {
  std::int64_t tiles_m;  ///< tiles down c, of Shape::M rows
  int tiles_n;           ///< tiles across c, of Shape::N columns
  int splits;            ///< parts of each sum, >= 1
  int steps;             ///< of kWgmmaStep
  int products = 1;      ///< that lie side by side in c, each of tiles_n / products tiles
  /// The order of the tiles of a product; row_major stands for an order of the kernel's own.
  TileMap map = TileMap::row_major;
  int group = kColumnGroup;  ///< of the kernel's own order: columns of tiles that are walked down

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
/// are counted across up to work.group columns first, then down.
__device__ inline bool item_at(const WgmmaWork& work, const WgmmaPlaces& places, std::int64_t index,
                               WgmmaItem* item) {
  if (work.map == TileMap::row_major) {
    const std::int64_t tiles = work.tiles_m * work.tiles_n;
    item->split = static_cast<int>(index / tiles);
    const std::int64_t tile = index % tiles, group = tile / (work.tiles_m * work.group);
    const int n0 = static_cast<int>(group) * work.group;
    const int columns = min(work.group, work.tiles_n - n0);
    const std::int64_t inside = tile - group * work.tiles_m * work.group;
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
/// within 128 bytes as TMA does it.
HOST_DEVICE constexpr int swizzled(int i, int k) {
  return i * kWgmmaStep + ((k / 4 ^ i % 8) * 4 + k % 4);
}

/// Why wgmma is not there, if so: it belongs to compute capability 9.0 alone, and later GPUs have
/// other instructions in its place.
inline Declined why_no_wgmma() { return why_not("sm_90a"); }

}  // namespace convladder::BACKEND::cuda_optimized::gemm
