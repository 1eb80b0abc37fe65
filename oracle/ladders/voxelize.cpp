/// @file voxelize.cpp
/// @brief Voxels and the means of their points: a search tree of sites, sums in double.
#include <algorithm>
#include <array>
#include <map>

#include "core/voxelize_problem.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/voxels.hpp"

namespace convladder::oracle {
namespace voxelize {
namespace {

/// What a voxel holds: of each column, as it adds up.
struct Held {
  std::array<double, 4> sum = {}, magnitude = {};
  std::int64_t points = 0;
};

std::int64_t longest_sum(const VoxelizeProblem& p) { return std::max(p.points, 1); }

/// The means are rounded to float here, once: the nearest float of the quotient, even though the
/// quotient in double was rounded before (Figueroa, "When is double rounding innocuous?", 1995).
std::vector<Expected> outputs(const VoxelizeProblem& p, const Arrays& inputs) {
  const auto points = inputs.at("points").as<float>();
  const auto columns = static_cast<std::size_t>(p.columns);
  std::map<std::array<std::int32_t, 3>, Held> voxels;  // z, y, x: in the order of keys
  for (std::size_t at = 0; at < points.size(); at += columns) {
    const auto voxel = voxel_at(p.grid, points.subspan(at, columns));
    if (!voxel) continue;
    Held& held = voxels[*voxel];
    ++held.points;
    for (std::size_t c = 0; c < columns; ++c) {
      held.sum[c] += double{points[at + c]};
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
    const auto count = static_cast<double>(held.points);
    for (std::size_t c = 0; c < columns; ++c) {
      features.values.push_back(double{static_cast<float>(held.sum[c] / count)});
      features.magnitude.push_back(held.magnitude[c] / count);
    }
    features.longest_sum = std::max(features.longest_sum, held.points);
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
