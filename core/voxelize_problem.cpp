#include "core/voxelize_problem.hpp"

#include <span>

#include "core/array.hpp"

namespace convladder {

VoxelizeProblem validated(VoxelizeProblem p) {
  require(p.points >= 0, "n", p.points, "must be at least 0");
  require(p.columns >= 3, "c", p.columns, "must be 3 (x, y, z) or more (and an intensity ...)");
  std::int64_t keys = 1;
  for (int axis = 0; axis < 3; ++axis) {
    require(p.grid.shape[axis] >= 1, "range", p.grid.shape[axis], "must hold a voxel");
    keys = checked_product({keys, p.grid.shape[axis]}, "voxels, which 64-bit keys number");
  }
  return p;
}

std::string describe(const VoxelizeProblem& p) {
  const auto& extents = p.grid.shape.value;
  const auto& sides = p.grid.voxel;
  const bool cubes = sides[0] == sides[1] && sides[1] == sides[2];
  return text(p.points, p.points == 1 ? " point" : " points", " of ", p.columns,
              " numbers, voxels of ", joined(std::span(sides).first(cubes ? 1 : 3), " x "), ", ",
              joined(std::vector<int>(extents, extents + 3), "x"));
}

Signature voxelize_signature(const VoxelizeProblem& p) {
  const auto found = [](const char* name, const char* axes, int columns, DType dtype) {
    return ArraySpec{
        .name = name, .axes = axes, .shape = {0, columns}, .dtype = dtype, .dynamic = true};
  };
  return {
      {{"points", "nc", {p.points, p.columns}, DType::f32}},
      {found("out_coords", "ma", 4, DType::i32), found("features", "mc", p.columns, DType::f32)}};
}

}  // namespace convladder
