/// @file tile_map.cuh
/// @brief Tile schedulers: from the index of a block, or of a work item of a persistent kernel, to
/// its tile, for every map, in closed form.
///
/// - namespace tile_map: grids and tiles of the maps. cuda_optimized/tile_map/maps.cu explains the
///   formulas and lists their results. Kernels with tiles include this file and support every map.
/// - namespace gemm: sizes and work items of `wgmma` kernels, persistent ones included, which count
///   the tiles of a map themselves (gemm/persistent.cu), and reasons not to support a GEMM.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::tile_map {

/// An output tile, counted in tiles.
struct Tile {
  int m, n;  ///< Down, across.
};

/// A block's work between two stores: some or all k-steps of a tile of a GEMM.
struct Unit {
  int batch;           ///< which GEMM of the batch
  Tile tile;           ///< which tile of it
  int k_begin, k_end;  ///< first k-step, last k-step + 1
};

/// The grid to launch; the caller has asked why_no_grid() first.
inline dim3 launch_grid(const TileMapProblem& map) {
  const BlockGrid grid = grid_of(map);
  return dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
              static_cast<unsigned>(grid.z));
}

/// The point at distance d along a Hilbert curve through a square of 2^log_side points a side,
/// which starts at (0, 0) and ends at (2^log_side - 1, 0). Two bits of d say which quarter, from
/// the smallest square to the largest; the curves through the first and the last quarter are
/// mirrored at a diagonal.
///
///     1 - 2      quarters in the order of the curve, x to the right, y upwards
///     |   |
///     0   3
__device__ inline void hilbert_point(int log_side, int d, int* x, int* y) {
  *x = *y = 0;
  for (int level = 0; level < log_side; ++level, d >>= 2) {
    const int side = 1 << level;
    const int quarter = d & 3;
    const int old_x = *x, old_y = *y;
    if (quarter == 0) {
      *x = old_y;
      *y = old_x;
    } else if (quarter == 3) {
      *x = side - 1 - old_y;
      *y = side - 1 - old_x;
    }
    *x += quarter >= 2 ? side : 0;
    *y += quarter == 1 || quarter == 2 ? side : 0;
  }
}

/// The reason not to support the map in a kernel whose blocks compute one whole tile each.
inline Declined why_no_whole_tiles(const TileMapProblem& map) {
  if (map.map == TileMap::split_k || map.map == TileMap::stream_k) {
    return text("the map ", name_of(map.map),
                " lets several blocks share a tile, and this kernel does not add up their parts");
  }
  return why_no_grid(map);
}

/// The tile of block (x, y) of the map's grid, under every map but stream_k. False: there is none.
__device__ inline bool tile_at(const TileMapProblem& map, int x, int y, Tile* tile) {
  *tile = {map.tiles_m, map.tiles_n};  // none
  switch (map.map) {
    case TileMap::row_major: *tile = {x / map.tiles_n, x % map.tiles_n}; break;
    case TileMap::identity1:
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8: {
      // A shift and a mask instead of a division: that is why the width is a power of two.
      const int log_width = log_tile(map.map, map.tiles_n);
      *tile = {x >> log_width, (y << log_width) + (x & ((1 << log_width) - 1))};
      break;
    }
    case TileMap::horizontal: *tile = {y, x}; break;
    case TileMap::grouped: {
      const int group_rows = map.group_rows < map.tiles_m ? map.group_rows : map.tiles_m;
      const int first_row = x / (group_rows * map.tiles_n) * group_rows;
      const int in_group = x % (group_rows * map.tiles_n);
      const int rows_left = map.tiles_m - first_row;  // the last group may have fewer rows
      const int rows = rows_left < group_rows ? rows_left : group_rows;
      *tile = {first_row + in_group % rows, in_group / rows};
      break;
    }
    case TileMap::hilbert: {
      // Squares along the longer axis; where the curve through one ends, the next one's begins.
      const int log_side = log_hilbert_side(map.tiles_m, map.tiles_n);
      int along, across;
      hilbert_point(log_side, x, &along, &across);
      along += x >> (2 * log_side) << log_side;
      *tile = map.tiles_m > map.tiles_n ? Tile{along, across} : Tile{across, along};
      break;
    }
    case TileMap::split_k:
    case TileMap::batched: *tile = {x, y}; break;
    case TileMap::stream_k: break;
  }
  return tile->m < map.tiles_m && tile->n < map.tiles_n;
}

/// This block's tile, whatever its z, under every map but stream_k. False: there is none, and the
/// block must leave before its first barrier. All threads of a block get the same answer.
__device__ inline bool tile_of_block(const TileMapProblem& map, Tile* tile) {
  // why_no_grid() has made sure that both fit an int.
  return tile_at(map, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), tile);
}

/// A map for kernels whose grid is another one: because each of their blocks computes many tiles,
/// or because they have more than tiles to count. Counts the blocks of the map's grid as CUDA
/// numbers them: x fastest, then y; a *plane* of them for each z.
struct Walk {
  TileMapProblem map;   ///< not stream_k
  unsigned row, plane;  ///< blocks of the map's grid along x, and of a whole plane

  /// The walk of a map for which why_no_grid() gives no reason.
  explicit Walk(const TileMapProblem& map_) : map(map_) {
    const BlockGrid grid = grid_of(map);
    row = static_cast<unsigned>(grid.x);
    plane = static_cast<unsigned>(grid.x * grid.y);
  }
  /// The tile of block `index` < plane. False: there is none.
  __device__ bool tile_at(unsigned index, Tile* tile) const {
    return tile_map::tile_at(map, static_cast<int>(index % row), static_cast<int>(index / row),
                             tile);
  }
};

/// Calls body(unit) for each unit of this block, in the order of work. All threads of a block see
/// the same units, so `body` may contain barriers; it begins with one if it reuses shared memory.
template <class Body>
__device__ void for_each_unit(const TileMapProblem& map, const Body& body) {
  if (map.map == TileMap::stream_k) {
    // Equal shares of all k-steps; the first blocks get one more of what remains.
    const std::int64_t steps = std::int64_t{map.batch} * map.tiles_m * map.tiles_n * map.k_steps;
    const std::int64_t share = steps / gridDim.x, more = steps % gridDim.x;
    std::int64_t step = blockIdx.x * share + (blockIdx.x < more ? blockIdx.x : more);
    const std::int64_t end = step + share + (blockIdx.x < more ? 1 : 0);
    while (step < end) {
      const std::int64_t tile = step / map.k_steps;  // row-major, a product after the other
      const int k = static_cast<int>(step % map.k_steps);
      const std::int64_t left = end - step;
      const int k_end = map.k_steps - k <= left ? map.k_steps : static_cast<int>(k + left);
      const std::int64_t row = tile / map.tiles_n;
      const int m = static_cast<int>(row % map.tiles_m);
      const int n = static_cast<int>(tile % map.tiles_n);
      body(Unit{static_cast<int>(row / map.tiles_m), {m, n}, k, k_end});
      step += k_end - k;
    }
    return;
  }
  Tile tile;
  if (!tile_of_block(map, &tile)) return;
  // A split's share of the k-steps; all of them unless the map is split_k.
  const int split_steps = ceil_div(map.k_steps, map.splits);
  const std::int64_t planes = std::int64_t{map.batch} * map.splits;
  for (std::int64_t z = blockIdx.z; z < planes; z += gridDim.z) {
    const std::int64_t k = z % map.splits * split_steps;
    if (k >= map.k_steps) continue;  // shares are rounded up: nothing is left for the last splits
    const std::int64_t k_end = k + split_steps < map.k_steps ? k + split_steps : map.k_steps;
    const int batch = static_cast<int>(z / map.splits);
    body(Unit{batch, tile, static_cast<int>(k), static_cast<int>(k_end)});
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::tile_map

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The reason not to support a problem without steps along k, for kernels that need one.
inline Declined why_no_steps(const GemmProblem& gemm) {
  if (gemm.K > 0) return {};
  return "has at least one step along k, and k = 0";
}

/// The reason not to support a problem with an epilogue, or without steps along k.
inline Declined why_no_plain_sums(const GemmProblem& gemm) {
  if (const Declined why = why_no_steps(gemm)) return why;
  if (!gemm.bias && gemm.activation == Activation::none) return {};
  return "stores sums as they are, and the problem has a bias or an activation";
}

inline constexpr int kWgmmaStep = kTensorMapRow;           ///< Of k in a stage: rows of 128 bytes.
inline constexpr int kConsumers = 2;                       ///< Consumer warpgroups, of 128 threads.
inline constexpr int kConsumerThreads = 128 * kConsumers;  ///< Of a block.
inline constexpr int kWgmmaThreads = kConsumerThreads + 32;  ///< And the producer warp.
inline constexpr int kAtom = 1024;  ///< Bytes after which the 128-byte swizzle repeats.

/// The sizes of a kernel: a block's tile, its stages in shared memory, and blocks per SM.
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

/// The work of a kernel: tiles, each in `splits` parts along k (split-K).
struct WgmmaWork {
  std::int64_t tiles_m;  ///< tiles down c, of Shape::M rows
  int tiles_n;           ///< tiles across c, of Shape::N columns
  int splits;            ///< parts along k, >= 1
  int steps;             ///< of kWgmmaStep
  int products = 1;      ///< GEMMs side by side in c, each of tiles_n / products tiles across
  /// The order of the tiles of a GEMM; row_major stands for the order of item_at().
  TileMap map = TileMap::row_major;
  int group = kColumnGroup;  ///< columns of tiles of a group, in the order of item_at()

  /// The number of WgmmaItem.
  HOST_DEVICE std::int64_t items() const { return tiles_m * tiles_n * splits; }
};

/// A work item: the steps first ... last - 1 of a tile.
struct WgmmaItem {
  std::int64_t m;  ///< the tile's row, in tiles
  int n,           ///< the tile's column, in tiles
      split,       ///< which part along k, < splits
      first,       ///< its first step, of kWgmmaStep
      last;        ///< one past its last step
};

/// The tile scheduler's index range: the blocks of work.map's grid, some of which have no tile.
struct WgmmaPlaces {
  tile_map::Walk walk;  ///< over the tiles of a GEMM, unless work.map is row_major
  std::int64_t count;   ///< indices, those without an item included

  /// For work under a map for which why_no_grid() gives no reason.
  explicit WgmmaPlaces(const WgmmaWork& work)
      : walk({.map = work.map,
              .tiles_m = static_cast<int>(work.tiles_m),
              .tiles_n = work.tiles_n / work.products}),
        count(work.map == TileMap::row_major
                  ? work.items()
                  : std::int64_t{walk.plane} * work.products * work.splits) {}
};

/// The item of an index; false: there is none. Blocks that run at the same time have neighbouring
/// indices and should read the same rows of a and b from the L2 cache: with row_major, tiles are
/// counted across up to work.group columns first, then down.
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
    // Planes are in the order of products, then splits.
    const int product = static_cast<int>(plane) % work.products;
    item->split = static_cast<int>(plane) / work.products;
    item->m = tile.m;
    item->n = product * (work.tiles_n / work.products) + tile.n;
  }
  item->first = static_cast<int>(std::int64_t{work.steps} * item->split / work.splits);
  item->last = static_cast<int>(std::int64_t{work.steps} * (item->split + 1) / work.splits);
  return true;
}

/// The index of float k of row i of an operand in a stage: the 16-byte pieces of a row of 128 bytes
/// are permuted by the 128-byte swizzle of TMA.
HOST_DEVICE constexpr int swizzled(int i, int k) {
  return i * kWgmmaStep + ((k / 4 ^ i % 8) * 4 + k % 4);
}

/// The reason not to support a GPU without `wgmma`, which compute capability 9.0 alone has.
inline Declined why_no_wgmma() { return why_not("sm_90a"); }

}  // namespace convladder::BACKEND::cuda_optimized::gemm
