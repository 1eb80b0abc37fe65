/// @file voxelize.cpp
/// @brief Options of voxelize: points from a file, simulated or made up.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <sstream>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "command/points.hpp"
#include "core/error.hpp"
#include "oracle/lidar_sweep.hpp"

namespace convladder::command {
namespace {

constexpr int kExamplePoints = 1000, kExampleColumns = 4;
/// Made-up integers are from -8 to 8; some z are outside of the range.
constexpr std::array<double, 6> kExampleRange = {-8, -8, -4, 9, 9, 5};
constexpr double kExampleVoxel = 2;

/// Points and their range.
struct Source {
  std::optional<Array> points = {};  ///< Empty: to be made up.
  VoxelGrid grid = {};
  std::string name = {};  ///< For the title.
};

/// The grid from the options, or from this range and this voxel side.
VoxelGrid read_grid(const Parameters& parameters, const std::array<double, 6>& range, double side) {
  return voxel_grid(read_range(parameters).value_or(range),
                    read_voxel(parameters).value_or(std::array{side, side, side}));
}

Source read_source(Parameters& parameters, std::uint64_t seed) {
  const auto alone = [&](const char* name, std::initializer_list<const char*> others) {
    if (!parameters.given(name)) return false;
    for (const char* other : others)
      require(!parameters.given(other), other, parameters.word(other).value_or(""),
              text("the points are already given by ", name));
    return true;
  };
  if (alone("points", {"lidar", "n", "c"})) {
    auto [numbers, grid] = read_points(parameters);
    const std::filesystem::path file = parameters.word("points").value_or("");
    return {std::move(numbers), grid, file.filename().string()};
  }
  require(!parameters.given("columns"), "columns", parameters.word("columns").value_or(""),
          "is used with --points only");
  if (alone("lidar", {"n", "c"}))
    return {lidar_points(lidar_voxels(parameters), seed),
            read_grid(parameters, kLidarRange, kLidarVoxel), "simulated LiDAR sweep"};
  return {.grid = read_grid(parameters, kExampleRange, kExampleVoxel)};
}

/// Notes how many points have no voxel, and along which axes a mean does not identify a voxel.
void look_at(const VoxelizeProblem& problem, const Array& points, const std::string& source,
             Parameters& parameters) {
  const auto numbers = points.as<float>();
  const auto columns = static_cast<std::size_t>(problem.columns);
  std::int64_t left_out = 0;
  for (std::size_t at = 0; at < numbers.size(); at += columns)
    left_out += key_of_point(problem.grid, &numbers[at]) == kNoVoxel ? 1 : 0;
  note_left_out(parameters, source, left_out, problem.points);
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto origin = static_cast<float>(std::abs(problem.grid.origin[axis]));
    const float spacing = origin - std::nextafter(origin, 0.0f);
    if (spacing <= problem.grid.voxel[axis]) continue;
    parameters.note(text(source, ": the means of ", kAxes[axis], " are float32, whose numbers are ",
                         spacing, " apart there, more than the side of a voxel"));
  }
}

std::vector<Task> read_voxelize(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which collects notes
  parameters.require_only(ladder.name, {"points", "columns", "lidar", "voxel", "range", "n", "c"});
  Source source = read_source(parameters, options.seed);
  VoxelizeProblem problem{.grid = source.grid};
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

/// "{1, 0.5, 2}", with enough digits for every double.
template <class Number>
std::string listed(const Number (&list)[3]) {
  std::ostringstream stream;
  stream.precision(17);
  stream << '{' << list[0] << ", " << list[1] << ", " << list[2] << '}';
  return stream.str();
}

std::string voxelize_in_code(const VoxelizeProblem& p) {
  return text("VoxelizeProblem{.grid = {.low = ", listed(p.grid.low),
              ", .high = ", listed(p.grid.high), ", .voxel = ", listed(p.grid.voxel),
              ", .shape = ", in_code(p.grid.shape), ", .origin = ", listed(p.grid.origin),
              "}, .points = ", p.points, ", .columns = ", p.columns, "}");
}

}  // namespace

LadderCommand voxelize_command() {
  return {.read = read_voxelize, .in_code = code_of<VoxelizeProblem>(voxelize_in_code)};
}

}  // namespace convladder::command
