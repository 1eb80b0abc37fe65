#include "command/save.hpp"

#include <algorithm>
#include <filesystem>

#include "command/ladders/ladder_command.hpp"
#include "command/npy.hpp"
#include "oracle/canonical.hpp"

namespace convladder::command {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(const Ladder& ladder, const Rung& rung, Where where) {
  std::string name = rung.name;
  std::replace(name.begin(), name.end(), '/', '.');
  return fs::path(ladder.name) / name / name_of(where);
}

/// The name of an output's file without its suffix; for a tile map, the name of the map.
std::string file_name(const Task& task, const std::string& output) {
  const LadderCommand& command = command_of(task.ladder->name);
  return command.name_among ? command.name_among(task.problem) : output;
}

/// The picture beside the first output: the filtered photograph, or the order of the tiles.
void stage_picture(OutputFolder& folder, const fs::path& place, const Task& task,
                   const Arrays& outputs) {
  const LadderCommand& command = command_of(task.ladder->name);
  if (!command.picture) return;
  const std::string first = task.ladder->signature(task.problem).outputs.front().name;
  const fs::path file = place / (file_name(task, first) + ".png");
  const auto picture = command.picture(task, outputs);
  if (!picture) return folder.stage_removal(file);
  write_bytes(folder.parameter(), folder.stage(file), *picture);
}

void stage_array(OutputFolder& folder, const fs::path& file, const Array* array) {
  if (array == nullptr) return folder.stage_removal(file);
  // Files hold float32 and int32; a float represents all values of the shorter types.
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
    // Sorts rows, so that the files of two rungs are identical if their results are, whatever the
    // order.
    const Arrays outputs = canonical(task.problem, row.outcome.outputs);
    for (const ArraySpec& spec : task.ladder->signature(task.problem).outputs) {
      if (spec.optional) continue;
      const auto output = outputs.find(spec.name);
      stage_array(folder, place / (file_name(task, spec.name) + ".npy"),
                  output == outputs.end() ? nullptr : &output->second);
    }
    if (task.out_coords)
      stage_array(folder, place / "out_coords.npy", outputs.empty() ? nullptr : &*task.out_coords);
    stage_picture(folder, place, task, outputs);
  }
}

}  // namespace convladder::command
