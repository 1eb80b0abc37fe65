#include "core/tile_map_problem.hpp"

#include "core/arithmetic.hpp"

namespace convladder {

TileMapProblem validated(TileMapProblem p) {
  for (const auto& [name, value] :
       {std::pair{"tiles_m", p.tiles_m}, {"tiles_n", p.tiles_n}, {"k_steps", p.k_steps},
        {"splits", p.splits}, {"batch", p.batch}, {"blocks", p.blocks}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  require(p.splits == 1 || p.map == TileMap::split_k, "splits", p.splits,
          text("only the map split_k divides the k-steps of a tile, not ", name_of(p.map)));
  require(p.splits <= p.k_steps, "splits", p.splits,
          text("must be at most the number of k-steps, ", p.k_steps));
  checked_product({p.tiles_m, p.tiles_n, p.k_steps, p.batch}, "tiles * k_steps * batch");
  return p;
}

std::string describe(const TileMapProblem& p) {
  std::string line = text(name_of(p.map), ", ", p.tiles_m, " x ", p.tiles_n, " tiles");
  if (p.k_steps != 1) line += text(" of ", p.k_steps, " k-steps");
  if (p.map == TileMap::split_k) line += text(", ", p.splits, " splits");
  if (p.map == TileMap::stream_k) line += text(", ", p.blocks, " blocks");
  if (p.batch != 1) line += text(", batch ", p.batch);
  return line;
}

Signature tile_map_signature(const TileMapProblem&) {
  return {{}, {{.name = "units", .axes = "uc", .shape = {0, kUnitColumns}, .dtype = DType::i32,
                .dynamic = true}}};
}

}  // namespace convladder
