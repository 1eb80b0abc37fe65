#include "core/points_in_float.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convladder {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A coordinate in [low, high), relative to the origin; NaN for any other.
float coordinate(const VoxelGrid& grid, const std::array<double, 6>& range, std::size_t axis,
                 double p) {
  if (!(p >= range[axis] && p < range[axis + 3])) return kNaN;
  // Rounding may make it equal to the upper corner, which is outside.
  const float last = std::nextafter(grid.high[axis], grid.low[axis]);
  return std::min(static_cast<float>(p - grid.origin[axis]), last);
}

float other_number(double number, std::size_t point) {
  require(!std::isfinite(number) || std::abs(number) <= double{std::numeric_limits<float>::max()},
          "points", number, text("does not fit float32 (point ", point, ")"));
  return static_cast<float>(number);
}

}  // namespace

Array points_in_float(const VoxelGrid& grid, const std::array<double, 6>& range,
                      std::span<const double> numbers, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  Array points(DType::f32, {static_cast<std::int64_t>(numbers.size() / width), columns});
  const auto to = points.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t column = i % width;
    to[i] = column < 3 ? coordinate(grid, range, column, numbers[i])
                       : other_number(numbers[i], i / width);
  }
  return points;
}

}  // namespace convladder
