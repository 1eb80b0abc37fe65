#include "core/voxel_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace convladder {
namespace {

constexpr const char* kAxes[] = {"x", "y", "z"};

const char* name_of(CoordinateType type) {
  constexpr const char* kNames[] = {"float16", "float32", "float64"};
  return kNames[static_cast<std::size_t>(type)];
}

int significant_bits(CoordinateType type) {
  constexpr int kBits[] = {11, 24, 53};
  return kBits[static_cast<std::size_t>(type)];
}

/// The distance between numbers of this many significant bits just below `most`, which is above 0.
double spacing_below(double most, int bits) {
  int exponent = 0;
  std::frexp(std::nextafter(most, 0.0), &exponent);
  return std::ldexp(1.0, exponent - bits);
}

bool fits_float(double number) {
  return std::abs(number) <= double{std::numeric_limits<float>::max()};
}

/// The voxels along an axis. The numbers may have been rounded to float32 once, and low and high
/// twice if they are products: the quotient may be off by twice `once`. More than an eighth of a
/// voxel is not a rounding error.
double voxels_between(double low, double high, double side, CoordinateType type) {
  const double quotient = (high - low) / side, nearest = std::round(quotient);
  const double of_side = std::ldexp(1.0, -24);
  const double of_range = std::ldexp(1.0, -std::max(significant_bits(type), 24));
  const double once = of_side * quotient + of_range * (std::abs(low) + std::abs(high)) / side;
  const bool is_whole = std::abs(quotient - nearest) <= std::min(2 * once, 0.125);
  return std::max(is_whole ? nearest : std::ceil(quotient), 1.0);
}

}  // namespace

VoxelGrid voxel_grid(const std::array<double, 6>& range, const std::array<double, 3>& voxel,
                     CoordinateType type) {
  VoxelGrid grid;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double low = range[axis], high = range[axis + 3], side = voxel[axis];
    require(std::isfinite(side) && side > 0 && fits_float(side) && static_cast<float>(side) > 0,
            "voxel", side, "must be a size above 0 that float32 can hold");
    require(low < high && fits_float(low) && fits_float(high), "range", joined(range, ","),
            text("must go up along every axis, within float32; along ", kAxes[axis],
                 " it goes from ", low, " to ", high));
    const double voxels = voxels_between(low, high, side, type);
    require(voxels < 2147483648.0, "voxel", side,
            text("is so small that the range holds ", voxels, " voxels along ", kAxes[axis],
                 ", 2^31 or more"));
    const double far = std::max(std::abs(low), std::abs(high));
    const double spacing = spacing_below(far, significant_bits(type));
    require(spacing <= side, "voxel", side,
            text("is less than the ", spacing, " between neighbouring ", name_of(type),
                 " numbers at ", kAxes[axis], " = ", far,
                 type == CoordinateType::f64 ? "" : ": give the points in float64"));
    const double origin = type == CoordinateType::f64 ? std::clamp(0.0, low, high) : 0.0;
    grid.origin[axis] = origin;
    grid.low[axis] = static_cast<float>(low - origin);
    grid.high[axis] = static_cast<float>(high - origin);
    const float reach = std::max(std::abs(grid.low[axis]), std::abs(grid.high[axis]));
    require(grid.low[axis] < grid.high[axis] && spacing_below(double{reach}, 24) <= side, "voxel",
            side,
            text("is so small that float32 cannot tell the ", voxels, " voxels along ", kAxes[axis],
                 " apart"));
    grid.voxel[axis] = static_cast<float>(side);
    grid.shape[2 - static_cast<int>(axis)] = static_cast<int>(voxels);
  }
  return grid;
}

}  // namespace convladder
