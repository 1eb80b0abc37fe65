#include "command/save.hpp"

#include <algorithm>
#include <filesystem>

#include "command/npy.hpp"
#include "command/pictures.hpp"
#include "command/png_file.hpp"
#include "oracle/canonical.hpp"

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

/// The filtered photograph, or the order of the tiles.
void stage_picture(OutputFolder& folder, const fs::path& place, const Task& task,
                   const Arrays& outputs) {
  if (const auto* tiles = std::get_if<TileMapProblem>(&task.problem)) {
    const fs::path file = place / (file_name(task.problem, "") + ".png");
    const auto units = outputs.find("units");
    if (units == outputs.end() || !can_draw()) return folder.stage_removal(file);
    write_bytes(folder.parameter(), folder.stage(file),
                tile_order_picture(*tiles, units->second.as<std::int32_t>()).png());
  } else if (task.ladder->name == "conv2d") {
    const fs::path file = place / "y.png";
    const auto y = outputs.find("y");
    if (task.filter == nullptr || y == outputs.end()) return folder.stage_removal(file);
    const Image image = picture_of(*task.filter, y->second, task.sample_bits);
    write_bytes(folder.parameter(), folder.stage(file),
                png_bytes(image.width(), image.height(), image.rgb()));
  }
}

void stage_array(OutputFolder& folder, const fs::path& file, const Array* array) {
  if (array == nullptr) return folder.stage_removal(file);
  // Files hold float32 and int32; a float holds all numbers of the shorter types.
  write_bytes(folder.parameter(), folder.stage(file),
              npy_bytes(array->dtype() == DType::i32 ? *array : rounded_to(*array, DType::f32)));
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
    // Two rungs' files are then the same where their results are, whatever order each has.
    const Arrays outputs = canonical(task.problem, row.outcome.outputs);
    for (const ArraySpec& spec : task.ladder->signature(task.problem).outputs) {
      if (spec.optional) continue;
      const auto output = outputs.find(spec.name);
      stage_array(folder, place / (file_name(task.problem, spec.name) + ".npy"),
                  output == outputs.end() ? nullptr : &output->second);
    }
    if (task.out_coords)
      stage_array(folder, place / "out_coords.npy", outputs.empty() ? nullptr : &*task.out_coords);
    stage_picture(folder, place, task, outputs);
  }
}

}  // namespace convladder::command
