/// @file voxelize.cpp
/// @brief Problems of voxelize from the command line: points of a file, simulated, or made up.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "command/points.hpp"
#include "core/error.hpp"
#include "oracle/lidar_sweep.hpp"

namespace convladder::command {
namespace {

constexpr int kExamplePoints = 1000, kExampleColumns = 4;
/// Made-up whole numbers are from -8 to 8: of z, some are outside.
constexpr std::array<float, 6> kExampleRange = {-8, -8, -4, 9, 9, 5};
constexpr float kExampleVoxel = 2;

/// Points, and where they count unless options say so.
struct Source {
  std::optional<Array> points = {};  ///< Empty: to be made up.
  std::array<float, 6> range = kExampleRange;
  float voxel = kExampleVoxel;
  std::string name = {};  ///< For the title.
};

Source read_file(Parameters& parameters) {
  const std::string file = parameters.word("points").value_or("");
  for (const char* name : {"voxel", "range"})
    require(parameters.given(name), "points", file, text("needs --", name, " beside it"));
  const Points points = read_points(parameters);
  Source source;
  source.points =
      Array(DType::f32,
            {static_cast<std::int64_t>(points.numbers.size()) / points.columns, points.columns});
  std::ranges::copy(points.numbers, source.points->as<float>().begin());
  source.name = std::filesystem::path(file).filename().string();
  return source;
}

Source read_source(Parameters& parameters, std::uint64_t seed) {
  const auto alone = [&](const char* name, std::initializer_list<const char*> others) {
    if (!parameters.given(name)) return false;
    for (const char* other : others)
      require(!parameters.given(other), other, parameters.word(other).value_or(""),
              text("the points come from ", name, " already"));
    return true;
  };
  if (alone("points", {"lidar", "n", "c"})) return read_file(parameters);
  if (alone("lidar", {"n", "c"}))
    return {lidar_points(lidar_voxels(parameters), seed), kLidarRange,
            static_cast<float>(kLidarVoxel), "simulated LiDAR sweep"};
  return {};
}

/// Throws BadInput for an intensity with which no mean can be compared; tells how many points have
/// no voxel.
void look_at(const VoxelizeProblem& problem, const Array& points, const std::string& source,
             Parameters& parameters) {
  const auto numbers = points.as<float>();
  const auto columns = static_cast<std::size_t>(problem.columns);
  std::int64_t left_out = 0;
  for (std::size_t at = 0; at < numbers.size(); at += columns) {
    if (key_of_point(problem.grid, &numbers[at]) == kNoVoxel) {
      ++left_out;
    } else {
      require(columns < 4 || std::isfinite(numbers[at + columns - 1]), "points",
              numbers[at + columns - 1],
              text("the intensity of point ", at / columns, " must be finite"));
    }
  }
  if (left_out != 0) {
    parameters.note(text(source, ": ", left_out, " of ", problem.points,
                         " points lie outside of the range, or are not finite, and are left out"));
  }
}

std::vector<Task> read_voxelize(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which takes notes
  parameters.require_only(ladder.name, {"points", "lidar", "voxel", "range", "n", "c"});
  Source source = read_source(parameters, options.seed);
  if (const std::vector<float> range = parameters.reals("range"); !range.empty()) {
    require(range.size() == 6, "range", joined(range, ","),
            "must be six numbers: x0,y0,z0,x1,y1,z1");
    std::ranges::copy(range, source.range.begin());
  }
  if (const std::vector<float> side = parameters.reals("voxel"); !side.empty()) {
    require(side.size() == 1, "voxel", joined(side, ","), "must be one number");
    source.voxel = side.front();
  }
  VoxelizeProblem problem{.grid = voxel_grid(source.range, source.voxel)};
  if (source.points) {
    const Shape& shape = source.points->shape();
    require(shape[0] <= std::numeric_limits<int>::max(), "points", shape[0],
            "must be fewer than 2^31");
    problem.points = static_cast<int>(shape[0]);
    problem.columns = static_cast<int>(shape[1]);
  } else {
    problem.points = parameters.number("n").value_or(kExamplePoints);
    problem.columns = parameters.number("c").value_or(kExampleColumns);
  }
  problem = validated(problem);
  Task task{.ladder = &ladder, .problem = problem, .title = describe(problem)};
  if (source.points) {
    look_at(problem, *source.points, text("points = ", source.name), parameters);
    task.title = source.name + ", " + task.title;
    task.given.emplace("points", std::move(*source.points));
  }
  task.notes = parameters.notes();
  return {std::move(task)};
}

std::string voxelize_in_code(const VoxelizeProblem& p) {
  const auto floats = [](const float(&list)[3]) { return text("{", joined(list, ", "), "}"); };
  return text("VoxelizeProblem{.grid = {.low = ", floats(p.grid.low),
              ", .high = ", floats(p.grid.high), ", .voxel = static_cast<float>(", p.grid.voxel,
              "), .shape = ", in_code(p.grid.shape), "}, .points = ", p.points,
              ", .columns = ", p.columns, "}");
}

}  // namespace

LadderCommand voxelize_command() {
  return {.read = read_voxelize, .in_code = code_of<VoxelizeProblem>(voxelize_in_code)};
}

}  // namespace convladder::command
