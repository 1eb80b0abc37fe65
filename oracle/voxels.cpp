#include "oracle/voxels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace convladder {

std::optional<std::array<std::int32_t, 3>> voxel_at(const VoxelGrid& grid,
                                                    std::span<const float> point) {
  std::array<std::int32_t, 3> voxel{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!(point[axis] >= grid.low[axis] && point[axis] < grid.high[axis])) return {};
    const float at = std::floor((point[axis] - grid.low[axis]) / grid.voxel[axis]);
    const double last = grid.shape[2 - static_cast<int>(axis)] - 1;
    voxel[2 - axis] = static_cast<std::int32_t>(std::min(double{at}, last));
  }
  return voxel;
}

Voxels voxels_of(const VoxelGrid& grid, std::span<const float> points, std::int64_t columns) {
  Voxels result;
  std::vector<std::array<std::int32_t, 3>> voxels;  // z, y, x
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t row = 0; row < points.size() / width; ++row) {
    const std::span<const float> point = points.subspan(row * width, 3);
    if (const auto voxel = voxel_at(grid, point)) {
      voxels.push_back(*voxel);
    } else {
      ++result.outside;
    }
  }
  std::sort(voxels.begin(), voxels.end());
  voxels.erase(std::unique(voxels.begin(), voxels.end()), voxels.end());
  result.coords = Array(DType::i32, {static_cast<std::int64_t>(voxels.size()), 4});
  auto to = result.coords.as<std::int32_t>().begin();
  for (const auto& voxel : voxels) to = std::copy(voxel.begin(), voxel.end(), to + 1);
  return result;
}

}  // namespace convladder
