/// @file voxels.hpp
/// @brief Sites of rulebooks: from the points of a sweep, or drawn by a seed.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// A box of space, cut into cubes.
struct VoxelGrid {
  std::array<float, 3> low = {};   ///< x, y, z of its lower corner.
  std::array<float, 3> high = {};  ///< x, y, z of its upper corner, which lies outside.
  float voxel = 0;                 ///< The side of a cube.
  PerAxis shape = {};              ///< Voxels along z, y, x: the order of coords.
};

/// The grid of a range. Its extents are ceil((high - low) / voxel) in float, the arithmetic of
/// voxels_of(), so that both agree about where the last voxel is.
/// @param range x0, y0, z0, x1, y1, z1
/// @throws BadInput that names `range` or `voxel`
VoxelGrid voxel_grid(const std::array<float, 6>& range, float voxel);

/// Points, as voxels.
struct Voxels {
  Array coords;              ///< [voxels][4]: batch 0, z, y, x; ascending, each voxel once.
  std::int64_t outside = 0;  ///< Points beyond the range, which were dropped.
};

/// The voxels that hold points. A point's voxel is floor((p - low) / voxel), axis by axis in float.
/// A point counts if low <= p < high. Where rounding takes such a point just past the last voxel,
/// it is outside, too.
/// @param points rows of `columns` numbers, the first three x, y and z
/// @throws BadInput that names the first point that is not finite
Voxels voxels_of(const VoxelGrid& grid, std::span<const float> points, std::int64_t columns);

/// Distinct sites [count][1 + ndim] in the grid of a problem, in no order. The same seed gives the
/// same sites on every machine. @param count at most the sites that there are
Array random_sites(const RulebookProblem& book, std::int64_t count, std::uint64_t seed);

}  // namespace convladder
