/// @file voxel_grid.hpp
/// @brief A box of space divided into voxels, and the voxel of a point.
#pragma once

#include <array>
#include <cstdint>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// A box of space divided into boxes of one size. Trivially copyable.
struct VoxelGrid {
  float low[3] = {};      ///< x, y, z of its lower corner, minus the origin.
  float high[3] = {};     ///< x, y, z of its upper corner, minus the origin; it is outside.
  float voxel[3] = {};    ///< The sides of a voxel along x, y, z, in the unit of the points.
  PerAxis shape = {};     ///< Voxels along z, y, x: the order of coords.
  double origin[3] = {};  ///< The offset x, y, z that was subtracted from the points; not 0 for
                          ///< float64 points only.
};

/// The type of the points' coordinates before the conversion to float32.
enum class CoordinateType { f16, f32, f64 };

/// The grid of a range. Along an axis it has (high - low) / voxel voxels, in double: the nearest
/// integer if the quotient is as close to it as the rounding of float32 numbers allows, otherwise
/// the next larger one. Thus -76.8 to 76.8 has 480 voxels of 0.32, whatever the type of the three
/// numbers.
///
/// Points in float64 are taken relative to `origin`, the point of the range that is nearest to 0
/// (see points_in_float()): coordinates far from 0 keep precision that float32 would lose.
/// @param range x0, y0, z0, x1, y1, z1
/// @param voxel the sides of a voxel along x, y, z
/// @param type of the points' coordinates
/// @throws BadInput that names `range` or `voxel`; also if neighbouring numbers of that type are
/// further apart than the side of a voxel
VoxelGrid voxel_grid(const std::array<double, 6>& range, const std::array<double, 3>& voxel,
                     CoordinateType type = CoordinateType::f32);

/// The same with cubic voxels.
inline VoxelGrid voxel_grid(const std::array<double, 6>& range, double side,
                            CoordinateType type = CoordinateType::f32) {
  return voxel_grid(range, std::array{side, side, side}, type);
}

/// The key of points without a voxel.
inline constexpr std::int64_t kNoVoxel = -1;

/// The key of a point's voxel, (z * Y + y) * X + x, or kNoVoxel. The voxel is floor((p - low) /
/// voxel), axis by axis in float; a point has one if low <= p < high on every axis, which excludes
/// NaN and infinity. If rounding moves such a point just past the last voxel, it belongs to the
/// last voxel, so that no point of the range is lost.
/// @param point x, y, z
HOST_DEVICE inline std::int64_t key_of_point(const VoxelGrid& grid, const float* point) {
  std::int64_t key = 0;
  for (int axis = 2; axis >= 0; --axis) {  // z, the slowest, first
    const float p = point[axis];
    if (!(p >= grid.low[axis] && p < grid.high[axis])) return kNoVoxel;
    const int extent = grid.shape[2 - axis];
    const float at = (p - grid.low[axis]) / grid.voxel[axis];
    // `at` is not negative, so the cast is a floor. It does not overflow, because `at` is less than
    // the extent.
    key = key * extent + (at < static_cast<float>(extent) ? static_cast<int>(at) : extent - 1);
  }
  return key;
}

/// All keys are less than this.
HOST_DEVICE inline std::int64_t voxel_count(const VoxelGrid& grid) {
  return std::int64_t{grid.shape[0]} * grid.shape[1] * grid.shape[2];
}

/// Writes the site of a voxel to row `row` of coords [rows][4]: sample 0, z, y, x.
HOST_DEVICE inline void write_voxel(const VoxelGrid& grid, std::int64_t key, std::int32_t* coords,
                                    std::int64_t row) {
  std::int32_t* to = coords + 4 * row;
  const std::int64_t line = key / grid.shape[2];
  to[0] = 0;
  to[1] = static_cast<std::int32_t>(line / grid.shape[1]);
  to[2] = static_cast<std::int32_t>(line % grid.shape[1]);
  to[3] = static_cast<std::int32_t>(key % grid.shape[2]);
}

}  // namespace convladder
