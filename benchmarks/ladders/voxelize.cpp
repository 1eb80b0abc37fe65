#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"
#include "oracle/lidar_sweep.hpp"

namespace convladder::benchmarks {

BenchmarkProblems voxelize_problems() {
  BenchmarkProblems all;
  for (const auto& [name, source] : point_sources()) {
    all.push_back(
        {.ladder = "voxelize",
         .id = text(name, "-points"),
         .teaches = source.words,
         .problem = validated(VoxelizeProblem{.grid = voxel_grid(kLidarRange, kLidarVoxel),
                                              .points = static_cast<int>(source.count),
                                              .columns = 4}),
         .points = name});
  }
  return all;
}

}  // namespace convladder::benchmarks
