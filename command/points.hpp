/// @file points.hpp
/// @brief Points of a LiDAR sweep from a file.
#pragma once

#include <vector>

#include "command/parameters.hpp"

namespace convladder::command {

/// Rows of numbers, the first three x, y and z.
struct Points {
  std::vector<float> numbers;  ///< Row by row.
  std::int64_t columns = 4;    ///< 3, or 4 with an intensity.
};

/// The file that --points names: .bin, float32 x, y, z, intensity, as the KITTI data set has them
/// (Geiger et al., "Vision meets robotics", 2013), or .npy, float32 [n][3] or [n][4].
/// @throws BadInput that names the file
Points read_points(Parameters& parameters);

/// How many voxels --lidar asks for; kOneTurn, if it does not say. @throws BadInput if there are
/// not so many
std::int64_t lidar_voxels(const Parameters& parameters);

}  // namespace convladder::command
