#include "command/points.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "command/files.hpp"
#include "command/npy.hpp"
#include "core/error.hpp"
#include "core/points_in_float.hpp"
#include "oracle/lidar_sweep.hpp"

namespace convladder::command {
namespace {

constexpr int kKittiColumns = 4;

/// The numbers of a file before their grid is known.
struct Stored {
  Array numbers;  ///< float [points][columns]
  CoordinateType type = CoordinateType::f32;
  std::vector<double> float64 = {};  ///< The element type; float64 numbers are converted into
                                     ///< `numbers` later.
  std::string converted = {};        ///< Like NpyFile::converted.
};

/// The mean difference of finite numbers that are `period` apart.
double difference_at(std::span<const float> numbers, std::size_t period) {
  double sum = 0, count = 0;
  for (std::size_t i = period; i < numbers.size(); ++i) {
    const double difference = std::abs(double{numbers[i]} - double{numbers[i - period]});
    if (!std::isfinite(difference)) continue;
    sum += difference;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

/// The row length, up to 16, that the numbers suggest, if it clearly differs from the given one:
/// numbers of the same column differ less than numbers of different columns. The evidence must be
/// stronger for few rows and for a multiple of `columns` (scanners may alternate between two
/// beams). Fewer than 8 rows give no suggestion.
std::optional<std::size_t> other_columns(std::span<const float> numbers, std::size_t columns) {
  const double as_read = difference_at(numbers, columns);
  const double rows = static_cast<double>(numbers.size()) / static_cast<double>(columns);
  const double clearly = std::min(0.9, 1 - 1 / std::sqrt(std::max(rows, 1.0))) * as_read;
  std::optional<std::size_t> best;
  double least = clearly;
  for (std::size_t period = 3; period <= 16; ++period) {
    if (period == columns || numbers.size() % period != 0 || numbers.size() < 8 * period) continue;
    const double difference = difference_at(numbers, period) * (period % columns == 0 ? 1.125 : 1);
    // A multiple of the correct length is about as good.
    if (difference < (best ? 0.95 : 1) * least) best = period, least = difference;
  }
  return best;
}

Stored read_bin(Parameters& parameters, const std::string& file) {
  const int columns = parameters.number("columns").value_or(kKittiColumns);
  require(columns >= 3, "columns", columns, "must be 3 (x, y, z) or more");
  require_available(2.0 * static_cast<double>(size_of_file("points", file)), "points = " + file);
  const std::vector<std::byte> bytes = read_file("points", file);
  const bool given = parameters.given("columns");
  const std::size_t row_bytes = static_cast<std::size_t>(columns) * sizeof(float);
  require(bytes.size() % row_bytes == 0, "points", file,
          text("holds ", bytes.size(), " bytes; points of ", columns, " float32 numbers",
               given ? "" : " (x, y, z, intensity)", " take ", row_bytes,
               " bytes each; --columns N reads points of N numbers"));
  Stored stored{Array(DType::f32, {static_cast<std::int64_t>(bytes.size() / row_bytes), columns})};
  if (!bytes.empty()) std::memcpy(stored.numbers.data(), bytes.data(), bytes.size());
  if (bytes.empty()) return stored;
  if (!given) {
    parameters.note(text("points = ", file,
                         ": read as points of 4 numbers, x, y, z, intensity; "
                         "--columns N reads points of N numbers"));
  }
  if (const auto other =
          other_columns(stored.numbers.as<float>(), static_cast<std::size_t>(columns))) {
    parameters.note(text("points = ", file, ": read as points of ", columns,
                         " numbers, but the numbers repeat every ", *other, ": perhaps --columns ",
                         *other, " is right"));
  }
  return stored;
}

Stored read_array(Parameters& parameters, const std::string& file) {
  NpyFile npy = read_npy("points", file, Float64::kept);
  const Shape& shape = npy.array.shape();
  require(npy.array.dtype() == DType::f32, "points", file,
          text("holds ", name_of(npy.array.dtype()), "; points must be float32 or float64"));
  require(shape.size() == 2 && shape[1] >= 3, "points", file,
          text("is ", to_string(shape), "; points are [n][3] or [n][4], or have more columns"));
  if (const auto columns = parameters.number("columns")) {
    require(*columns == shape[1], "columns", *columns,
            text("points = ", file, " has ", shape[1], " columns"));
  }
  const CoordinateType type = npy.converted.starts_with("float64")   ? CoordinateType::f64
                              : npy.converted.starts_with("float16") ? CoordinateType::f16
                                                                     : CoordinateType::f32;
  return {std::move(npy.array), type, std::move(npy.float64), npy.converted};
}

/// Notes the columns beside x, y and z that look like a beam index. (Points with only integers are
/// made up.)
void note_rings(Parameters& parameters, const std::string& file, const Array& points) {
  constexpr float kMostBeams = 128;
  const auto numbers = points.as<float>();
  const auto columns = static_cast<std::size_t>(points.shape()[1]);
  std::vector<bool> whole(columns, true);
  std::vector<float> largest(columns, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float number = numbers[i];
    const std::size_t column = i % columns;
    whole[column] = whole[column] && std::trunc(number) == number;
    if (column >= 3) whole[column] = whole[column] && number >= 0 && number < kMostBeams;
    largest[column] = std::max(largest[column], number);
  }
  if (whole[0] && whole[1] && whole[2]) return;
  for (std::size_t column = 3; column < columns; ++column) {
    if (!whole[column] || largest[column] < 2) continue;  // a column of 0 and 1 may be an intensity
    parameters.note(text("points = ", file, ": number ", column + 1,
                         " of each point is an integer up to ", largest[column],
                         ": if it is a ring index and not an intensity, its mean is meaningless"));
  }
}

}  // namespace

std::optional<std::array<double, 6>> read_range(const Parameters& parameters) {
  const std::vector<double> range = parameters.reals("range");
  if (range.empty()) return {};
  require(range.size() == 6, "range", joined(range, ","), "must be six numbers: x0,y0,z0,x1,y1,z1");
  std::array<double, 6> corners{};
  std::ranges::copy(range, corners.begin());
  return corners;
}

std::optional<std::array<double, 3>> read_voxel(const Parameters& parameters) {
  std::vector<double> sides = parameters.reals("voxel");
  if (sides.empty()) return {};
  require(sides.size() == 1 || sides.size() == 3, "voxel", joined(sides, ","),
          "must be one number, or three: along x, y and z");
  if (sides.size() == 1) sides.assign(3, sides.front());
  return std::array{sides[0], sides[1], sides[2]};
}

Points read_points(Parameters& parameters) {
  const std::string file = parameters.word("points").value_or("");
  const auto range = read_range(parameters);
  const auto voxel = read_voxel(parameters);
  require(voxel.has_value(), "points", file, "requires --voxel");
  require(range.has_value(), "points", file, "requires --range");
  // The options are checked before a large file is read.
  voxel_grid(*range, *voxel, CoordinateType::f64);
  const std::string suffix = std::filesystem::path(file).extension().string();
  require(suffix == ".bin" || suffix == ".npy", "points", file,
          "must be a .bin file (x, y, z, intensity in float32, or --columns N numbers) or a .npy "
          "file ([n][3] or [n][4], or more columns)");
  Stored stored = suffix == ".bin" ? read_bin(parameters, file) : read_array(parameters, file);
  Points points{.numbers = {}, .grid = voxel_grid(*range, *voxel, stored.type)};
  const auto& origin = points.grid.origin;
  if (!stored.converted.empty()) {
    const bool is_moved = std::ranges::any_of(origin, [](double of_axis) { return of_axis != 0; });
    parameters.note(text("points = ", file, ": ", stored.converted,
                         is_moved
                             ? text(", after ", text(origin[0], ", ", origin[1], ", ", origin[2]),
                                    " was subtracted from x, y, z")
                             : ""));
  }
  points.numbers =
      stored.type == CoordinateType::f64
          ? points_in_float(points.grid, *range, stored.float64, stored.numbers.shape()[1])
          : std::move(stored.numbers);
  note_rings(parameters, file, points.numbers);
  return points;
}

void note_left_out(Parameters& parameters, const std::string& source, std::int64_t left_out,
                   std::int64_t points) {
  if (left_out == 0) return;
  parameters.note(text(source, ": ", left_out, " of ", points,
                       " points lie outside of the range or are not finite; they are ignored"));
}

std::int64_t lidar_voxels(const Parameters& parameters) {
  const std::string word = parameters.word("lidar").value_or("");
  if (word.empty()) return kOneTurn;
  const std::int64_t voxels = parse_whole("lidar", word);
  require(voxels >= 1 && voxels <= kMostLidarVoxels, "lidar", word,
          text("must be 1 to ", kMostLidarVoxels, " voxels"));
  return voxels;
}

}  // namespace convladder::command
