#include "ladders/tile_map.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::tile_map_ladder() {
  return {
      "tile_map", "tile scheduling: which thread block computes which output tile and k-steps",
      [](const Problem& problem) { return tile_map_signature(std::get<TileMapProblem>(problem)); },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, tile_map, maps, "",
                          "definition: every map is enumerated by a loop over the tiles"),
                  CUDA_ROW(cuda_naive, tile_map, row_major, "cpu_reference/tile_map/maps",
                           "row-major map: a block computes its tile's row and column by a "
                           "division and a remainder"),
                  CUDA_ROW(cuda_optimized, tile_map, maps, "cuda_naive/tile_map/row_major",
                           "closed form: a formula for every map gives the tile of a block index"),
              }),
      })};
}
