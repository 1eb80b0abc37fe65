#include "core/tile_map_problem.hpp"

#include <algorithm>
#include <limits>

#include "core/array.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxGridYZ = 65535;  // CUDA's limit along grid.y and grid.z

/// The k-steps of all tiles, or more than 2^63 - 1 as a double.
double steps_of(const TileMapProblem& p) {
  return static_cast<double>(p.tiles_m) * p.tiles_n * p.k_steps * p.batch;
}

}  // namespace

BlockGrid grid_of(const TileMapProblem& p) {
  const std::int64_t tiles_m = p.tiles_m, tiles_n = p.tiles_n;
  const std::int64_t z = std::min(std::int64_t{p.batch} * p.splits, kMaxGridYZ);
  switch (p.map) {
    case TileMap::row_major:
    case TileMap::grouped: return {tiles_m * tiles_n, 1, z};
    case TileMap::identity1:
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8: {
      const std::int64_t width = std::int64_t{1} << log_tile(p.map, p.tiles_n);
      return {tiles_m * width, ceil_div(tiles_n, width), z};
    }
    case TileMap::horizontal: return {tiles_n, tiles_m, z};
    case TileMap::hilbert: {
      const std::int64_t side = std::int64_t{1} << log_hilbert_side(p.tiles_m, p.tiles_n);
      return {side * side * ceil_div(std::max(tiles_m, tiles_n), side), 1, z};
    }
    case TileMap::split_k:
    case TileMap::batched: return {tiles_m, tiles_n, z};
    case TileMap::stream_k:
      // Compared in double: the product may exceed int64 before it has been checked.
      return {steps_of(p) < p.blocks ? static_cast<std::int64_t>(steps_of(p)) : p.blocks, 1, 1};
  }
  return {0, 0, 0};
}

std::optional<std::string> why_no_grid(const TileMapProblem& p) {
  const BlockGrid grid = grid_of(p);
  const std::string needed = text("the map ", name_of(p.map), " needs a grid of ", grid.x, " x ",
                                  grid.y, " x ", grid.z, " blocks, but ");
  if (grid.x > kMaxBlocks) return needed + "grid.x ends at 2^31 - 1";
  if (grid.y > kMaxGridYZ) return needed + "grid.y ends at 65535";
  if (static_cast<double>(grid.x) * static_cast<double>(grid.y * grid.z) > kMaxBlocks) {
    return needed + "the index of a block must be less than 2^31";
  }
  return {};
}

TileMapProblem validated(TileMapProblem p) {
  for (const auto& [name, value] : {std::pair{"tiles_m", p.tiles_m},
                                    {"tiles_n", p.tiles_n},
                                    {"k_steps", p.k_steps},
                                    {"splits", p.splits},
                                    {"batch", p.batch},
                                    {"blocks", p.blocks},
                                    {"group_rows", p.group_rows}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  require(p.splits == 1 || p.map == TileMap::split_k, "splits", p.splits,
          text("only the map split_k divides the k-steps of a tile, not ", name_of(p.map)));
  require(p.splits <= p.k_steps, "splits", p.splits,
          text("must be at most the number of k-steps, ", p.k_steps));
  checked_product({p.tiles_m, p.tiles_n, p.k_steps, p.batch}, "tiles * k_steps * batch");
  if (const auto reason = why_no_grid(p)) {
    throw BadInput(text("tiles = ", p.tiles_m, ",", p.tiles_n, ": too many; ", *reason));
  }
  return p;
}

std::string describe(const TileMapProblem& p) {
  std::string line = text(name_of(p.map), ", ", p.tiles_m, " x ", p.tiles_n, " tiles");
  if (p.k_steps != 1) line += text(" of ", p.k_steps, " k-steps");
  if (p.map == TileMap::split_k) line += text(", ", p.splits, " splits");
  if (p.map == TileMap::stream_k) line += text(", ", p.blocks, " blocks");
  if (p.map == TileMap::grouped) line += text(", groups of ", p.group_rows, " rows");
  if (p.batch != 1) line += text(", batch ", p.batch);
  return line;
}

std::string map_in_words(const TileMapProblem& p) {
  std::string how;
  switch (p.map) {
    case TileMap::identity1:
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8: {
      const int width = 1 << log_tile(p.map, p.tiles_n);
      how = text(", ", width, " wide", p.tiles_n % width == 0 ? "" : ", the last one narrower");
      break;
    }
    case TileMap::grouped:
      how = p.group_rows >= p.tiles_m       ? ", one group"
            : p.tiles_m % p.group_rows == 0 ? ", several groups"
                                            : ", the last group smaller";
      break;
    case TileMap::hilbert: {
      const int side = 1 << log_hilbert_side(p.tiles_m, p.tiles_n);
      const int longer = std::max(p.tiles_m, p.tiles_n);
      how = text(longer <= side ? ", one square" : ", several squares",
                 longer % side == 0 && std::min(p.tiles_m, p.tiles_n) == side ? "" : ", not full");
      break;
    }
    case TileMap::split_k: {
      const int share = ceil_div(p.k_steps, p.splits);
      how = text(p.splits == 1 ? ", one part" : ", several parts",
                 ceil_div(p.k_steps, share) < p.splits ? ", some empty"
                 : p.k_steps % p.splits != 0           ? ", uneven"
                                                       : "");
      break;
    }
    case TileMap::stream_k: {
      const auto steps = static_cast<std::int64_t>(steps_of(p));
      how = steps <= p.blocks       ? ", a step a block"
            : steps % p.blocks == 0 ? ", even shares"
                                    : ", uneven shares";
      break;
    }
    case TileMap::row_major:
    case TileMap::horizontal:
    case TileMap::batched: break;
  }
  const bool planes = std::int64_t{p.batch} * p.splits > kMaxGridYZ && p.map != TileMap::stream_k;
  return text(name_of(p.map), how, planes ? ", several planes a block" : "");
}

Signature tile_map_signature(const TileMapProblem&) {
  return {{},
          {{.name = "units",
            .axes = "uc",
            .shape = {0, kUnitColumns},
            .dtype = DType::i32,
            .dynamic = true}}};
}

}  // namespace convladder
