/// @file voxel_grid.hpp
/// @brief A box of space, cut into cubes, and which of them a point lies in.
#pragma once

#include <array>
#include <cstdint>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// A box of space, cut into cubes. Trivially copyable.
struct VoxelGrid {
  float low[3] = {};   ///< x, y, z of its lower corner.
  float high[3] = {};  ///< x, y, z of its upper corner, which lies outside.
  float voxel = 0;     ///< The side of a cube, in the unit of the points.
  PerAxis shape = {};  ///< Voxels along z, y, x: the order of coords.
};

/// The grid of a range. Its extents are ceil((high - low) / voxel) in float, the arithmetic of
/// key_of_point(), so that both agree about where the last voxel is.
/// @param range x0, y0, z0, x1, y1, z1
/// @throws BadInput that names `range` or `voxel`
VoxelGrid voxel_grid(const std::array<float, 6>& range, float voxel);

/// Of points without a voxel.
inline constexpr std::int64_t kNoVoxel = -1;

/// The key of a point's voxel, (z * Y + y) * X + x, or kNoVoxel. The voxel is floor((p - low) /
/// voxel), axis by axis in float; a point has one if low <= p < high on every axis, which no NaN
/// and no infinity is. Where rounding takes such a point just past the last voxel, it has none,
/// either.
/// @param point x, y, z
HOST_DEVICE inline std::int64_t key_of_point(const VoxelGrid& grid, const float* point) {
  std::int64_t key = 0;
  for (int axis = 2; axis >= 0; --axis) {  // z, the slowest, first
    const float p = point[axis];
    if (!(p >= grid.low[axis] && p < grid.high[axis])) return kNoVoxel;
    const int extent = grid.shape[2 - axis];
    const float at = (p - grid.low[axis]) / grid.voxel;
    if (!(at < static_cast<float>(extent))) return kNoVoxel;
    key = key * extent + static_cast<int>(at);  // at is not negative: the cast is a floor
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
