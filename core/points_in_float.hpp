/// @file points_in_float.hpp
/// @brief Points that are stored in float64, as rungs take them.
#pragma once

#include <array>
#include <span>

#include "core/array.hpp"
#include "core/voxel_grid.hpp"

namespace convladder {

/// Points in float64 as float32 [points][columns]. The grid's origin is subtracted from x, y and z
/// in double, and the difference is rounded, so that coordinates far from 0 keep their digits. A
/// point of the range stays inside of it; one beyond it becomes NaN, which has no voxel.
/// @param range that the grid was made of, with CoordinateType::f64
/// @throws BadInput if another column holds a finite number that float32 cannot
Array points_in_float(const VoxelGrid& grid, const std::array<double, 6>& range,
                      std::span<const double> numbers, std::int64_t columns);

}  // namespace convladder
