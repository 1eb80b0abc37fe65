/// @file voxelize_problem.hpp
/// @brief Voxelization: from the points of a LiDAR sweep to sites, the first step of a sparse
/// network.
#pragma once

#include <functional>
#include <string>

#include "core/output_creator.hpp"
#include "core/types.hpp"
#include "core/voxel_grid.hpp"

namespace convladder {

/// The parameters of a voxelization. Trivially copyable. This comment is the definition of the
/// operation: of points [points][columns], with x, y, z and further measurements, those in the same
/// voxel, by key_of_point(), become one row,
///
///     out_coords[m]  = (0, z, y, x) of the m-th voxel that holds a point, in the order of keys
///     features[m][c] = (sum of points[n][c] over the points n of that voxel) / (their number)
///
/// - A point without a voxel is ignored: outside of the range, or with x, y or z not finite.
/// - The mean is over all columns, including x, y and z: the points' centre in space, not relative
///   to the voxel. The grid's origin is added to the mean of x, y and z.
/// - Sums are in double, or as precise, with the same bits in any order of threads. A mean is a
///   quotient, plus the origin, in double, rounded to float once: mean_of(). A double has 29 bits
///   more than a float, so a sum of n numbers of similar size is exact for n up to 2^28, whatever
///   the order and the distance from 0. In general the error of a mean is at most half a unit in
///   its last place plus (n + 1) 2^-53 times the mean of the numbers' magnitudes.
/// - If sums are exact in float, as those of small integers, the mean is the quotient rounded once
///   (Figueroa, "When is double rounding innocuous?", 1995), bit for bit.
/// - A non-finite number in a column beyond x, y and z propagates to its voxel's mean.
///
/// This is the mean VFE of OpenPCDet (voxels of Zhou and Tuzel, "VoxelNet", 2018) without its
/// limits: no point and no voxel is dropped because there are too many.
struct VoxelizeProblem {
  VoxelGrid grid = {};  ///< The range, and its voxels.
  int points = 0;       ///< Rows; may be 0.
  int columns = 4;      ///< 3 (x, y, z) or more (an intensity, a time ...).
};

/// The same problem. @throws BadInput if an extent is out of range, or keys do not fit 63 bits
VoxelizeProblem validated(VoxelizeProblem problem);

/// One line: "1000 points of 4 numbers, voxels of 0.1, 80x1600x1600", or "... of 0.1 x 0.1 x 0.2".
std::string describe(const VoxelizeProblem& problem);

/// The arrays: points [points][columns] to out_coords [M][4] (int32) and features [M][columns].
Signature voxelize_signature(const VoxelizeProblem& problem);

/// The mean of column c of this many points of a voxel with this sum.
HOST_DEVICE inline float mean_of(const VoxelGrid& grid, std::int64_t c, double sum,
                                 std::int64_t points) {
  const double mean = sum / static_cast<double>(points);
  return static_cast<float>(c < 3 ? grid.origin[c] + mean : mean);
}

/// Like OutputCreator, for a float output.
using FloatOutputCreator = std::function<float*(const std::string& name, const Shape& shape)>;

/// The arrays at the place where a rung runs.
struct VoxelizeArrays {
  using Problem = VoxelizeProblem;        ///< The problem type of these arrays.
  const float* points = nullptr;          ///< [points][columns]
  OutputCreator create = {};              ///< called once, for "out_coords" [M][4]
  FloatOutputCreator create_floats = {};  ///< called once, for "features" [M][columns]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const VoxelizeProblem& problem, const VoxelizeArrays& arrays);

}  // namespace convladder
