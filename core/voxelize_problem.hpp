/// @file voxelize_problem.hpp
/// @brief From the points of a sweep to sites: the first step of every sparse network.
#pragma once

#include <functional>
#include <string>

#include "core/output_creator.hpp"
#include "core/types.hpp"
#include "core/voxel_grid.hpp"

namespace convladder {

/// The parameters of a voxelization. Trivially copyable. What is computed is said here, and nowhere
/// else: of points [points][columns], x, y, z and perhaps an intensity, those that lie in the same
/// voxel, by key_of_point(), become one row,
///
///     out_coords[m]  = (0, z, y, x) of the m-th voxel that holds a point, in the order of keys
///     features[m][c] = (sum of points[n][c] over the points n of that voxel) / (their number)
///
/// - A point without a voxel takes no part: outside of the range, or with x, y or z not finite.
/// - The mean is of all columns, x, y and z, too: the points' centre in space, not in the voxel.
/// - Sums are in float, in any order, each mean one division, correctly rounded. So where the sums
///   are exact, as those of small whole numbers are, the mean has one right value, bit for bit. It
///   does not where the sum is multiplied by the reciprocal of the number.
/// - An intensity that is not finite goes into its voxel's mean, as into any sum.
///
/// It is the mean VFE of OpenPCDet (voxels of Zhou and Tuzel, "VoxelNet", 2018) without its limits:
/// no point and no voxel is dropped because there are too many.
struct VoxelizeProblem {
  VoxelGrid grid = {};  ///< The range, and its voxels.
  int points = 0;       ///< Rows; 0 is legal.
  int columns = 4;      ///< 3 or 4.
};

/// The same problem. @throws BadInput if an extent is out of range, or keys do not fit 63 bits
VoxelizeProblem validated(VoxelizeProblem problem);

/// One line: "1000 points of 4 numbers, voxels of 0.1, 80x1600x1600".
std::string describe(const VoxelizeProblem& problem);

/// The arrays: points [points][columns] to out_coords [M][4] (int32) and features [M][columns].
Signature voxelize_signature(const VoxelizeProblem& problem);

/// As OutputCreator, for an output of floats.
using FloatOutputCreator = std::function<float*(const std::string& name, const Shape& shape)>;

/// The arrays where a rung computes.
struct VoxelizeArrays {
  using Problem = VoxelizeProblem;        ///< Whose arrays these are.
  const float* points = nullptr;          ///< [points][columns]
  OutputCreator create = {};              ///< called once, for "out_coords" [M][4]
  FloatOutputCreator create_floats = {};  ///< called once, for "features" [M][columns]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const VoxelizeProblem& problem, const VoxelizeArrays& arrays);

}  // namespace convladder
