/// @file voxels.hpp
/// @brief Sites of rulebooks from the points of a LiDAR sweep.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/array.hpp"
#include "core/voxel_grid.hpp"

namespace convladder {

/// The voxels of points.
struct Voxels {
  Array coords;              ///< [voxels][4]: batch index 0, z, y, x; ascending, without
                             ///< duplicates.
  std::int64_t outside = 0;  ///< Points without a voxel: outside of the range, or not finite.
};

/// A point's voxel, z, y, x, if it has one: floor((p - low) / voxel), axis by axis in float, but no
/// more than the last one. It has one if low <= p < high.
/// @param point at least x, y and z
std::optional<std::array<std::int32_t, 3>> voxel_at(const VoxelGrid& grid,
                                                    std::span<const float> point);

/// The voxels that contain points: those of voxel_at().
/// @param points rows of `columns` numbers, the first three x, y and z
Voxels voxels_of(const VoxelGrid& grid, std::span<const float> points, std::int64_t columns);

}  // namespace convladder
