#include "ladders/voxelize.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::voxelize_ladder() {
  return {
      "voxelize",
      "the points of a sweep to sites in order, with the mean of each site's points",
      [](const Problem& problem) { return voxelize_signature(std::get<VoxelizeProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, voxelize, hash_map, "",
                  "a hash map from voxels to the sums of their points"),
          branch("cpu_reference/voxelize/hash_map",
                 CPU_ROW(cpu_reference, voxelize, sorted_points, "cpu_reference/voxelize/hash_map",
                         "points sorted by voxel: each voxel is a run, and runs are in order")),
          CUDA_ROW(cuda_naive, voxelize, sorted_points, "cpu_reference/voxelize/sorted_points",
                   "keys are sorted by a library, and one thread adds up a run"),
          branch("cuda_naive/voxelize/sorted_points",
                 CUDA_ROW(cuda_optimized, voxelize, bit_grid, "cuda_naive/voxelize/sorted_points",
                          "a bit for each voxel, ranks of bits as rows, sums in fixed point")),
          CUDA_ROW(cuda_optimized, voxelize, point_lists, "cuda_optimized/voxelize/bit_grid",
                   "lists of each voxel's points, counted and filled: sums have one order"),
      }};
}
