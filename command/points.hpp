/// @file points.hpp
/// @brief Reads the points of a LiDAR sweep from a file.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "command/parameters.hpp"
#include "core/voxel_grid.hpp"

namespace convladder::command {

/// The corners of --range: x0, y0, z0, x1, y1, z1; empty if not given.
std::optional<std::array<double, 6>> read_range(const Parameters& parameters);

/// The sides of a voxel along x, y and z from --voxel, one number or three; empty if not given.
std::optional<std::array<double, 3>> read_voxel(const Parameters& parameters);

/// A LiDAR sweep.
struct Points {
  Array numbers;   ///< float [points][columns], x, y, z first, relative to the origin of the grid.
  VoxelGrid grid;  ///< The grid of --range and --voxel.
};

/// The file that --points names: .bin, float32 x, y, z, intensity as in the KITTI data set (Geiger
/// et al., "Vision meets robotics", 2013), or --columns numbers per point; or .npy [n][3 or more],
/// float32, float16 or float64. Notes report assumptions and suspicious values.
/// @throws BadInput that names the file or the option
Points read_points(Parameters& parameters);

/// Notes how many of the points have no voxel, if any. @param source "points = FILE"
void note_left_out(Parameters& parameters, const std::string& source, std::int64_t left_out,
                   std::int64_t points);

/// The number of voxels that --lidar requests; kOneTurn if it has no value. @throws BadInput if a
/// sweep has fewer voxels
std::int64_t lidar_voxels(const Parameters& parameters);

}  // namespace convladder::command
