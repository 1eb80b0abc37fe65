#include "ladders/voxelize.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::voxelize_ladder() {
  return {
      "voxelize",
      "voxelization: the points of a LiDAR sweep become ordered sites with the mean of their "
      "points",
      [](const Problem& problem) { return voxelize_signature(std::get<VoxelizeProblem>(problem)); },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, voxelize, hash_map, "",
                          "hash map: voxels are keys, and each entry sums its points"),
                  CPU_ROW(
                      cpu_reference, voxelize, sorted_points, "cpu_reference/voxelize/hash_map",
                      "sort: points are sorted by voxel, so that each voxel is a contiguous range"),
                  CUDA_ROW(cuda_naive, voxelize, sorted_points,
                           "cpu_reference/voxelize/sorted_points",
                           "sort: CUB sorts the keys, then one thread per voxel adds its points"),
                  CUDA_ROW(cuda_optimized, voxelize, bit_grid, "cuda_naive/voxelize/sorted_points",
                           "bitmap: a voxel's row is the rank of its bit; fixed-point atomic sums"),
                  CUDA_ROW(cuda_optimized, voxelize, point_lists,
                           "cuda_optimized/voxelize/bit_grid",
                           "count, prefix sum, fill: lists of each voxel's points give a fixed "
                           "order of summation"),
              }),
      })};
}
