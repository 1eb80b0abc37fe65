/// @file gemm_task.cpp
/// @brief Problems of gemm and tile_map from options.
#include <algorithm>

#include "command/files.hpp"
#include "command/task.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

const GemmProblem kExample = {.M = 200, .N = 168, .K = 128};
constexpr int kExampleTilesM = 12, kExampleTilesN = 10, kExampleSteps = 8;

/// Units of work: rows of a result.
double units_of(const TileMapProblem& p) {
  return static_cast<double>(p.tiles_m) * p.tiles_n * p.batch * p.splits + p.blocks;
}

}  // namespace

Task read_gemm(const Ladder& ladder, Parameters parameters) {
  parameters.require_only(ladder.name, {"m", "n", "k", "a", "b", "map", "dtype"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Extents extents;
  for (const char* name : {"m", "n", "k"}) extents.tell_option(parameters, name);
  const auto read = [&](const char* name, const char* axes, const char* rows, const char* columns) {
    if (!parameters.given(name)) return;
    const Array& array = task.given.emplace(name, *parameters.array(name, {axes})).first->second;
    const std::string source = parameters.source(name, array.shape());
    extents.tell(rows, array.shape()[0], source);
    extents.tell(columns, array.shape()[1], source);
  };
  read("a", "[m][k]", "m", "k");
  read("b", "[k][n]", "k", "n");
  const GemmProblem problem =
      validated(GemmProblem{.M = extents.value("m", kExample.M),
                            .N = extents.value("n", kExample.N),
                            .K = extents.value("k", kExample.K),
                            .map = parameters.map().value_or(TileMap::row_major),
                            .precision = parameters.precision()});
  task.problem = problem;
  task.title = describe(problem);
  task.notes = parameters.notes();
  return task;
}

std::vector<Task> read_tile_map(const Ladder& ladder, const Parameters& parameters) {
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
    // Without --map, --splits speaks to the one map that splits.
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

}  // namespace convladder::command
