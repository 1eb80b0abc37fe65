/// @file every_tile.cu
/// @brief Every map hands out every tile exactly once: asked of tile_at() itself, without a launch.
#include "check/assignment.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::check {
namespace {

constexpr int kMostTiles = 40;  ///< Down, and across.

/// What is wrong under one map; empty: nothing.
std::string difference_of(const TileMapProblem& map) {
  using BACKEND::cuda_optimized::tile_map::Tile;
  std::vector<int> times(static_cast<std::size_t>(map.tiles_m) *
                         static_cast<std::size_t>(map.tiles_n));
  const BlockGrid grid = grid_of(map);
  for (int y = 0; y < grid.y; ++y) {
    for (int x = 0; x < grid.x; ++x) {
      Tile tile{-1, -1};
      if (!BACKEND::cuda_optimized::tile_map::tile_at(map, x, y, &tile)) continue;
      if (tile.m < 0 || tile.m >= map.tiles_m || tile.n < 0 || tile.n >= map.tiles_n)
        return text("block (", x, ", ", y, ") gets tile (", tile.m, ", ", tile.n, ")");
      ++times[static_cast<std::size_t>(tile.m * map.tiles_n + tile.n)];
    }
  }
  for (int i = 0; i < static_cast<int>(times.size()); ++i) {
    const int found = times[static_cast<std::size_t>(i)];
    if (found != 1) {
      return text("tile (", i / map.tiles_n, ", ", i % map.tiles_n, ") is handed out ", found,
                  " times");
    }
  }
  return "";
}

}  // namespace

std::string every_tile() {
  for (const TileMap map : {TileMap::identity1, TileMap::identity2, TileMap::identity4,
                            TileMap::identity8, TileMap::grouped, TileMap::hilbert}) {
    for (int m = 1; m <= kMostTiles; ++m) {
      for (int n = 1; n <= kMostTiles; ++n) {
        const TileMapProblem problem{.map = map, .tiles_m = m, .tiles_n = n, .group_rows = 6};
        if (const std::string difference = difference_of(problem); !difference.empty())
          return text("for ", describe(problem), ": ", difference);
      }
    }
  }
  return "";
}

}  // namespace convladder::check
