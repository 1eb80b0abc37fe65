/// @file voxelize.cpp
/// @brief Definition of voxelize: a search tree of sites, sums in long double.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "core/voxelize_problem.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/voxels.hpp"

namespace convladder::oracle {
namespace voxelize {
namespace {

/// The sums of a voxel's columns.
struct Held {
  std::vector<long double> sum;
  std::vector<double> magnitude;
  std::int64_t points = 0;
};

std::int64_t longest_sum(const VoxelizeProblem& p) { return std::max(p.points, 1); }

/// Adds the mean of a column, rounded to float, and the bound of a rung's error: half a unit in its
/// last place, plus the error of a sum of this many terms in double. allowed_error() of one term is
/// several units of 2^-24, and the magnitude here is the mean's own, not that of the terms. If a
/// mean is NaN or infinite, it must be exactly that.
void add_mean(Expected& features, double origin, const Held& held, std::size_t column) {
  const auto count = static_cast<double>(held.points);
  // The steps of the definition: if the sum is exact, its exact bits are required.
  const double mean = origin + static_cast<double>(held.sum[column]) / count;
  features.values.push_back(double{static_cast<float>(mean)});
  // The sum's error, n 2^-53 of its magnitude, relative to the mean's unit of 2^-24.
  const double lost = std::ldexp(held.magnitude[column], 24 - 53);
  features.magnitude.push_back(std::isfinite(mean) ? std::abs(mean) + lost : 0.0);
}

std::vector<Expected> outputs(const VoxelizeProblem& p, const Arrays& inputs) {
  const auto points = inputs.at("points").as<float>();
  const auto columns = static_cast<std::size_t>(p.columns);
  std::map<std::array<std::int32_t, 3>, Held> voxels;  // z, y, x: in the order of keys
  for (std::size_t at = 0; at < points.size(); at += columns) {
    const auto voxel = voxel_at(p.grid, points.subspan(at, columns));
    if (!voxel) continue;
    Held& held = voxels[*voxel];
    held.sum.resize(columns);
    held.magnitude.resize(columns);
    ++held.points;
    for (std::size_t c = 0; c < columns; ++c) {
      held.sum[c] += static_cast<long double>(points[at + c]);
      held.magnitude[c] += std::abs(double{points[at + c]});
    }
  }
  Signature signature = voxelize_signature(p);
  for (ArraySpec& spec : signature.outputs)
    spec.shape[0] = static_cast<std::int64_t>(voxels.size());
  Expected coords, features;
  coords.spec = signature.outputs[0];
  features.spec = signature.outputs[1];
  for (const auto& [voxel, held] : voxels) {
    coords.integers.insert(coords.integers.end(), {0, voxel[0], voxel[1], voxel[2]});
    for (std::size_t c = 0; c < columns; ++c)
      add_mean(features, c < 3 ? p.grid.origin[c] : 0.0, held, c);
  }
  return {coords, features};
}

}  // namespace
}  // namespace voxelize

Definition voxelize_definition() {
  return define<VoxelizeProblem>(
      {.longest_sum = voxelize::longest_sum, .outputs = voxelize::outputs});
}

}  // namespace convladder::oracle
