/// @file lidar_sweep.hpp
/// @brief A simulated LiDAR sweep: the sites that a car in a street scans.
#pragma once

#include <array>
#include <cstdint>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// Voxels along z, y, x, of 0.1 m: from 80 m behind to 80 m ahead of the sensor, 80 m to each side,
/// and from 3 m below to 5 m above it.
inline constexpr PerAxis kLidarShape = {{80, 1600, 1600, 0}};

/// Side of a voxel in metres.
inline constexpr double kLidarVoxel = 0.1;

/// As many voxels as one full rotation of the sensor hits.
inline constexpr std::int64_t kOneTurn = 0;

/// The most voxels that may be requested: the street has not many more.
inline constexpr std::int64_t kMostLidarVoxels = 1'000'000;

/// The order of the voxels of lidar_sweep().
enum class SweepOrder {
  ascending,  ///< By cell, as produced by a program that numbers cells.
  scanned     ///< By rotation and beam, each over all directions: the order of points in data sets.
};

/// Sites of a sweep, int32 [voxels][4], batch index 0 first.
///
/// It imitates the 64-beam roof sensors with which public data sets were recorded (KITTI: Geiger et
/// al., "Vision meets robotics", 2013; Waymo: Sun et al., "Scalability in perception for autonomous
/// driving", 2020, with 64 beams and some thousand directions per rotation), in a scene of simple
/// solids, like driving simulators (CARLA: Dosovitskiy et al., 2017): a street with pavements,
/// buildings and cars (boxes) and poles (cylinders) beside it. Each ray ends at the first surface,
/// up to 75 m away, with some noise in its length, or has no echo.
///
/// Everything is computed in integer millimetres, so that the same seed gives the same sweep on
/// every machine.
///
/// @param voxels kOneTurn, or their number: the sensor stops during a rotation as soon as it has
/// hit that many, or continues, 1 m further ahead with every rotation. There are fewer only if
/// further rotations find hardly any new ones.
/// @param seed of the scene and the noise
Array lidar_sweep(std::int64_t voxels, std::uint64_t seed,
                  SweepOrder order = SweepOrder::ascending);

/// The points of the same sweep, x, y, z, intensity, in a scanner's order (SweepOrder::scanned):
/// float [points][4], as many as needed to hit this many voxels. Coordinates are in metres,
/// relative to the first sensor position; kLidarRange is the grid. The intensity, 0 to 1, falls
/// with the distance. Points outside of the grid are included.
Array lidar_points(std::int64_t voxels, std::uint64_t seed);

/// The corners of the grid in metres from the first sensor position: x0, y0, z0, x1, y1, z1.
inline constexpr std::array<double, 6> kLidarRange = {-80, -80, -3, 80, 80, 5};

}  // namespace convladder
