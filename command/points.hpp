/// @file points.hpp
/// @brief Points of a LiDAR sweep from a file.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "command/parameters.hpp"
#include "core/voxel_grid.hpp"

namespace convladder::command {

/// The corners that --range gives: x0, y0, z0, x1, y1, z1; empty if not given.
std::optional<std::array<double, 6>> read_range(const Parameters& parameters);

/// The sides of a voxel along x, y and z that --voxel gives, one number or three; empty if not
/// given.
std::optional<std::array<double, 3>> read_voxel(const Parameters& parameters);

/// A sweep.
struct Points {
  Array numbers;   ///< float [points][columns], x, y, z first, less the grid's origin.
  VoxelGrid grid;  ///< Of --range and --voxel.
};

/// The file that --points names: .bin, float32 x, y, z, intensity, as the KITTI data set has them
/// (Geiger et al., "Vision meets robotics", 2013), or --columns numbers a point; or .npy [n][3 or
/// more], float32, float16 or float64. Notes say what was assumed, and what looks wrong about it.
/// @throws BadInput that names the file or the option
Points read_points(Parameters& parameters);

/// Notes how many of the points have no voxel, if any. @param source "points = FILE"
void note_left_out(Parameters& parameters, const std::string& source, std::int64_t left_out,
                   std::int64_t points);

/// How many voxels --lidar asks for; kOneTurn, if it does not say. @throws BadInput if there are
/// not so many
std::int64_t lidar_voxels(const Parameters& parameters);

}  // namespace convladder::command
