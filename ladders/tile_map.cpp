#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::tile_map_ladder() {
  return {"tile_map",
          "which thread block computes which output tile and k-steps",
          [](const Problem& problem) {
            return tile_map_signature(std::get<TileMapProblem>(problem));
          },
          {}};
}
