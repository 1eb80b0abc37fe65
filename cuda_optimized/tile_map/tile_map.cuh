/// @file tile_map.cuh
/// @brief From a block's index to its tile, for every map, in closed form.
///
/// cuda_optimized/tile_map/maps.cu explains the formulas and lists what they give; kernels with
/// tiles include this file, and thereby run under every map without knowing any.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::tile_map {

/// An output tile, counted in tiles.
struct Tile {
  int m, n;  ///< Down, across.
};

/// What a block adds up in one go: some or all k-steps of a tile of a product.
struct Unit {
  int batch;           ///< Which product.
  Tile tile;           ///< Which tile of it.
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

/// Why a kernel whose blocks compute one whole tile each cannot run under the map, if so.
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
