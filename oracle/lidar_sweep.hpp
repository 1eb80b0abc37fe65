/// @file lidar_sweep.hpp
/// @brief A simulated LiDAR sweep: sites as a car in a street sees them.
#pragma once

#include <array>
#include <cstdint>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// Voxels along z, y, x, of 0.1 m: from 80 m behind to 80 m ahead of the sensor, as much to its
/// sides, and from 3 m below to 5 m above it.
inline constexpr PerAxis kLidarShape = {{80, 1600, 1600, 0}};

/// Side of a voxel in metres.
inline constexpr double kLidarVoxel = 0.1;

/// As many voxels as one whole turn of the sensor hits.
inline constexpr std::int64_t kOneTurn = 0;

/// No more voxels may be asked for: the street has not many more.
inline constexpr std::int64_t kMostLidarVoxels = 1'000'000;

/// In which order the voxels of lidar_sweep() are given.
enum class SweepOrder {
  ascending,  ///< By their cells, as a program that numbers cells gives them.
  scanned     ///< Turn by turn, beam by beam, each all around: as those data sets list points.
};

/// Sites of a sweep, int32 [voxels][4], batch 0 first.
///
/// It imitates the 64-beam sensors on the roofs of cars that the public data sets were recorded
/// with (KITTI: Geiger et al., "Vision meets robotics", 2013; Waymo: Sun et al., "Scalability in
/// perception for autonomous driving", 2020, with 64 beams and some thousand directions a turn), in
/// a scene of simple solids, as driving simulators do (CARLA: Dosovitskiy et al., 2017): a street
/// with pavements, buildings and cars (boxes) and poles (cylinders) beside it. Each ray ends at the
/// first surface, up to 75 m away, with some noise in its length, or finds nothing.
///
/// Everything is computed in whole millimetres, so that the same seed gives the same sweep on every
/// machine.
///
/// @param voxels kOneTurn, or how many: the sensor stops in the middle of a turn as soon as it has
/// hit so many, or goes on turning, 1 m further ahead with every turn. There are fewer only if
/// turn after turn finds hardly any new ones.
/// @param seed of the scene and the noise
Array lidar_sweep(std::int64_t voxels, std::uint64_t seed,
                  SweepOrder order = SweepOrder::ascending);

/// The points of the same sweep, x, y, z, intensity, in a scanner's order (SweepOrder::scanned):
/// float [points][4], as many as it takes to hit so many voxels. Metres, from the sensor of the
/// first turn: kLidarRange is the grid. The intensity, 0 to 1, falls with the distance, as an echo
/// does. Those beyond the grid are there, too.
Array lidar_points(std::int64_t voxels, std::uint64_t seed);

/// The corners of the grid in metres from the first turn's sensor: x0, y0, z0, x1, y1, z1.
inline constexpr std::array<double, 6> kLidarRange = {-80, -80, -3, 80, 80, 5};

}  // namespace convladder
