#include "core/voxel_grid.hpp"

#include <cmath>

#include "core/error.hpp"

namespace convladder {

VoxelGrid voxel_grid(const std::array<float, 6>& range, float voxel) {
  require(std::isfinite(voxel) && voxel > 0, "voxel", voxel, "must be a size above 0");
  VoxelGrid grid{.voxel = voxel};
  constexpr const char* kNames[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const float low = range[axis], high = range[axis + 3];
    require(low < high, "range", joined(range, ","),
            text("must go up along every axis; along ", kNames[axis], " it goes from ", low, " to ",
                 high));
    const float extent = std::ceil((high - low) / voxel);
    require(extent < 2147483648.0f, "voxel", voxel,
            text("is so small that the range holds ", extent, " voxels along ", kNames[axis],
                 ", 2^31 or more"));
    grid.low[axis] = low;
    grid.high[axis] = high;
    grid.shape[2 - static_cast<int>(axis)] = static_cast<int>(extent);
  }
  return grid;
}

}  // namespace convladder
