#include "command/save.hpp"

#include <algorithm>
#include <filesystem>

#include "command/npy.hpp"
#include "command/png_file.hpp"

namespace convladder::command {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(const Ladder& ladder, const Rung& rung, Where where) {
  std::string name = rung.name;
  std::replace(name.begin(), name.end(), '/', '.');
  return fs::path(ladder.name) / name / name_of(where);
}

/// The name of an output's file without its suffix; a tile map's is the map's.
std::string file_name(const Problem& problem, const std::string& output) {
  const auto* tiles = std::get_if<TileMapProblem>(&problem);
  return tiles == nullptr ? output : std::string(name_of(tiles->map));
}

}  // namespace

void check_folders(const OutputFolder& folder, const Ladder& ladder,
                   const std::vector<Seat>& seats) {
  for (const Seat& seat : seats) folder.check(folder_of(ladder, *seat.rung, seat.where));
}

void stage_outputs(OutputFolder& folder, const Report& report) {
  const Task& task = report.task;
  for (const Row& row : report.rows) {
    const fs::path place = folder_of(*task.ladder, *row.rung, row.where);
    for (const ArraySpec& spec : task.ladder->signature(task.problem).outputs) {
      const fs::path file = place / (file_name(task.problem, spec.name) + ".npy");
      const auto output = row.outcome.outputs.find(spec.name);
      if (output == row.outcome.outputs.end()) {
        folder.stage_removal(file);
      } else {
        write_bytes(folder.parameter(), folder.stage(file), npy_bytes(output->second));
      }
    }
    const fs::path picture = place / "y.png";
    const auto y = row.outcome.outputs.find("y");
    if (task.filter != nullptr && y != row.outcome.outputs.end()) {
      const Image image = picture_of(*task.filter, y->second, task.sample_bits);
      write_bytes(folder.parameter(), folder.stage(picture),
                  png_bytes(image.width(), image.height(), image.rgb()));
    } else if (task.ladder->name == "conv2d") {
      folder.stage_removal(picture);
    }
  }
}

}  // namespace convladder::command
