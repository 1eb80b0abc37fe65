/// @file waves.cpp
/// @brief The table of the wave simulator.
#include <cstdio>

#include "command/compare.hpp"
#include "command/terminal.hpp"
#include "core/text.hpp"
#include "core/tile_map_model.hpp"

namespace convladder::command {
namespace {

constexpr TileSize kTile = {128, 128, 8};  // a common choice for FP32 GEMMs
constexpr std::size_t kMap = 12, kNumber = 10;

std::string megabytes(double bytes) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f MB", bytes / 1e6);
  return buffer;
}

}  // namespace

std::string wave_table(const std::vector<Report>& reports) {
  const auto& first = std::get<TileMapProblem>(reports.front().task.problem);
  std::string table =
      text("  Predicted reads from DRAM: ", first.blocks, first.blocks == 1 ? " block" : " blocks",
           " run concurrently, a tile is ", kTile.m, " x ", kTile.n, " floats, a k-step ", kTile.k,
           ";\n  data that several blocks of a wave read are counted once.\n");
  table +=
      styled(Style::dim,
             "  " + left("map", kMap) + right("blocks", kNumber) + right("of them", kNumber) +
                 right("waves", kNumber) + right("panels", kNumber) + right("panels", kNumber) +
                 right("", kNumber + 2) + "\n  " + left("", kMap) + right("launched", kNumber) +
                 right("idle", kNumber) + right("", kNumber) + right("of a", kNumber) +
                 right("of b", kNumber) + right("reads", kNumber + 2));
  for (const Report& report : reports) {
    const auto& problem = std::get<TileMapProblem>(report.task.problem);
    const std::vector<Wave> waves = simulate_waves(report.units, problem.blocks, kTile);
    Wave sum;
    for (const Wave& wave : waves) {
      sum.a_panels += wave.a_panels;
      sum.b_panels += wave.b_panels;
      sum.bytes += wave.bytes;
    }
    const BlockGrid grid = grid_of(problem);
    std::int64_t busy = 0;  // units are sorted by block
    for (std::size_t i = 0; i < report.units.size(); i += kUnitColumns) {
      if (i == 0 || report.units[i] != report.units[i - kUnitColumns]) ++busy;
    }
    const std::int64_t launched = grid.x * grid.y * grid.z;
    table += "\n  " + left(name_of(problem.map), kMap) + right(text(launched), kNumber) +
             right(text(launched - busy), kNumber) + right(text(waves.size()), kNumber) +
             right(text(sum.a_panels), kNumber) + right(text(sum.b_panels), kNumber) +
             right(megabytes(static_cast<double>(sum.bytes)), kNumber + 2);
  }
  return table;
}

}  // namespace convladder::command
