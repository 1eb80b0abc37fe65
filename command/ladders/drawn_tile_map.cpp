#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

DrawnProblem draw_tile_map(Drawer& drawer, double) {
  DrawnProblem problem;
  const TileMapName& map = drawer.any_of(kTileMaps);
  problem.options["map"] = map.name;
  set(problem, "tiles", {drawer.edge(1, 70), drawer.edge(1, 70), drawer.edge(1, 40)});
  if (map.map == TileMap::split_k) set(problem, "splits", {drawer.edge(1, 9)});
  if (map.map == TileMap::batched) set(problem, "batch", {drawer.edge(1, 5)});
  if (drawer.one_in(2)) set(problem, "blocks", {drawer.edge(1, 300)});
  return problem;
}

double tile_map_work(const TileMapProblem& p) {
  return 64.0 * p.tiles_m * p.tiles_n * p.batch * p.splits + p.blocks;
}

}  // namespace

DrawnLadder drawn_tile_map() {
  return {
      .draw = draw_tile_map, .work = work_in<TileMapProblem>(tile_map_work), .takes_reals = false};
}

}  // namespace convladder::command
