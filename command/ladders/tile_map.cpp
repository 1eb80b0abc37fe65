#include <algorithm>

#include "command/compare.hpp"
#include "command/files.hpp"
#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "command/pictures.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

constexpr int kExampleTilesM = 12, kExampleTilesN = 10, kExampleSteps = 8;

/// Units of work: rows of a result.
double units_of(const TileMapProblem& p) {
  return static_cast<double>(p.tiles_m) * p.tiles_n * p.batch * p.splits + p.blocks;
}

std::vector<Task> read_tile_map(const Ladder& ladder, const Options& options) {
  const Parameters& parameters = options.problem;
  parameters.require_only(ladder.name, {"tiles", "splits", "batch", "blocks", "map"});
  TileMapProblem example{
      .tiles_m = kExampleTilesM, .tiles_n = kExampleTilesN, .k_steps = kExampleSteps};
  const std::vector<int> tiles = parameters.numbers("tiles");
  if (!tiles.empty()) {
    require(tiles.size() == 2 || tiles.size() == 3, "tiles", *parameters.word("tiles"),
            "must be TM,TN or TM,TN,STEPS");
    example.tiles_m = tiles[0];
    example.tiles_n = tiles[1];
    example.k_steps = tiles.size() == 3 ? tiles[2] : 1;
  }
  example.batch = parameters.number("batch").value_or(1);
  example.blocks = parameters.number("blocks").value_or(example.blocks);
  const std::optional<int> splits = parameters.number("splits");
  const std::optional<TileMap> only = parameters.map();

  std::vector<Task> tasks;
  for (const TileMapName& map : kTileMaps) {
    if (only && *only != map.map) continue;
    TileMapProblem problem = example;
    problem.map = map.map;
    // Without --map, --splits selects the one map that splits.
    if (map.map == TileMap::split_k) {
      problem.splits = splits.value_or(std::clamp(problem.k_steps, 1, kDefaultSplits));
    } else if (only) {
      problem.splits = splits.value_or(1);
    }
    problem = validated(problem);
    // Each row has six numbers, in the reference, in a result, and in copies of both.
    require_available(units_of(problem) * kUnitColumns * 4 * 6,
                      text("the problem (", describe(problem), ")"));
    tasks.push_back({.ladder = &ladder, .problem = problem, .title = describe(problem)});
  }
  return tasks;
}

std::string tile_map_in_code(const TileMapProblem& p) {
  return text("TileMapProblem{.map = TileMap::", name_of(p.map), ", .tiles_m = ", p.tiles_m,
              ", .tiles_n = ", p.tiles_n, ", .k_steps = ", p.k_steps, ", .splits = ", p.splits,
              ", .batch = ", p.batch, ", .blocks = ", p.blocks, ", .group_rows = ", p.group_rows,
              "}");
}

std::string map_of(const Problem& problem) {
  return std::string(name_of(std::get<TileMapProblem>(problem).map));
}

/// The order of the tiles.
std::optional<std::vector<std::byte>> tile_order(const Task& task, const Arrays& outputs) {
  const auto units = outputs.find("units");
  if (units == outputs.end() || !can_draw()) return {};
  return tile_order_picture(std::get<TileMapProblem>(task.problem),
                            units->second.as<std::int32_t>())
      .png();
}

}  // namespace

LadderCommand tile_map_command() {
  return {.read = read_tile_map,
          .in_code = code_of<TileMapProblem>(tile_map_in_code),
          .name_among = map_of,
          .picture = tile_order,
          .below_table = wave_table};
}

}  // namespace convladder::command
