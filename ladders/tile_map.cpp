#include "ladders/tile_map.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::tile_map_ladder() {
  return {
      "tile_map",
      "which thread block computes which output tile and k-steps",
      [](const Problem& problem) { return tile_map_signature(std::get<TileMapProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, tile_map, maps, "",
                  "every map written as the walk over the tiles that it is"),
          CUDA_ROW(cuda_naive, tile_map, row_major, "cpu_reference/tile_map/maps",
                   "a block finds its own tile: a division and its remainder"),
          branch("cuda_naive/tile_map/row_major",
                 CUDA_ROW(cuda_optimized, tile_map, maps, "cuda_naive/tile_map/row_major",
                          "every map in closed form, from block index to tile")),
      }};
}
