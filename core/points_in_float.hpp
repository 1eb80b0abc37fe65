/// @file points_in_float.hpp
/// @brief Converts points in float64 to the float32 points of the rungs.
#pragma once

#include <array>
#include <span>

#include "core/array.hpp"
#include "core/voxel_grid.hpp"

namespace convladder {

/// Points in float64 as float32 [points][columns]. The grid's origin is subtracted from x, y and z
/// in double, and the difference is rounded, so that coordinates far from 0 keep their precision. A
/// point inside of the range stays inside; a point outside becomes NaN, which has no voxel.
/// @param range of which the grid was made, with CoordinateType::f64
/// @throws BadInput if another column holds a finite number that does not fit float32
Array points_in_float(const VoxelGrid& grid, const std::array<double, 6>& range,
                      std::span<const double> numbers, std::int64_t columns);

}  // namespace convladder
