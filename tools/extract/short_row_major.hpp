/// @file short_row_major.hpp
/// @brief Like short.hpp, for GEMMs whose tiles are computed in row-major order.
#include <algorithm>

namespace convladder {

/// The tile map of this program. cuda_optimized/tile_map/ of ConvLadder has ten others.
enum class TileMap { row_major };

/// As on the command line.
constexpr const char* name_of(TileMap) { return "row_major"; }

/// The tiles of a batch of products.
struct TileMapProblem {
  TileMap map = TileMap::row_major;  ///< Which map.
  int tiles_m = 1, tiles_n = 1;      ///< output tiles down and across
  int k_steps = 1;                   ///< steps of the main loop along k for one tile
  int splits = 1, batch = 1;         ///< blocks that share a tile, products
};

/// The grid of a map.
inline BlockGrid grid_of(const TileMapProblem& map) {
  return {std::int64_t{map.tiles_m} * map.tiles_n, 1, std::min(map.batch, 65535)};
}

/// The assignment of this program's tiles.
inline std::string map_in_words(const TileMapProblem&) { return "row_major"; }

}  // namespace convladder

namespace convladder::BACKEND::cuda_optimized::tile_map {

/// A block for each tile.
inline dim3 launch_grid(const TileMapProblem& map) {
  return dim3(static_cast<unsigned>(map.tiles_m) * map.tiles_n, 1, std::min(map.batch, 65535));
}

/// The tile of block (x, y) of the map's grid. False: there is none.
__device__ inline bool tile_at(const TileMapProblem& map, int x, int, Tile* tile) {
  *tile = {x / map.tiles_n, x % map.tiles_n};
  return tile->m < map.tiles_m;
}

/// This block's tile, whatever its z. False: there is none.
__device__ inline bool tile_of_block(const TileMapProblem& map, Tile* tile) {
  const int x = static_cast<int>(blockIdx.x);
  *tile = {x / map.tiles_n, x % map.tiles_n};
  return tile->m < map.tiles_m;
}

}  // namespace convladder::BACKEND::cuda_optimized::tile_map
