/// @file sorted_points.cpp
/// @brief Sort: points are sorted by voxel, so that each voxel is a contiguous range.
///
/// - Before: hash_map.cpp
/// - After: cuda_naive/voxelize/sorted_points.cu
///
/// **The idea.** If points are sorted by the keys of their voxels, the points of a voxel are
/// adjacent, and the voxels are in order. No look-up is needed: one pass over the list sums each
/// range and divides by its length.
///
///     keys     7 3 7 - 3       sorted, each with its point     3 3 | 7 7
///     points   a b c d e                                       b e | a c       the sort is stable
///
/// The sort is stable, so the sums have the same bits as those of hash_map.cpp.
///
/// **Expect.** n log2(n) comparisons, no look-up. **Costs.** It sorts points, whereas hash_map.cpp
/// sorts voxels. However, GPUs have a fast library for sorting.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder::cpu_reference::voxelize {
namespace {

/// points [points][columns] to out_coords [M][4] and features [M][columns].
void run(const VoxelizeProblem& problem, const VoxelizeArrays& arrays, const Context&) {
  const std::int64_t columns = problem.columns;
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted;  // key, index of the point
  for (std::int64_t n = 0; n < problem.points; ++n) {
    const std::int64_t key = key_of_point(problem.grid, arrays.points + n * columns);
    if (key != kNoVoxel) sorted.emplace_back(key, n);
  }
  std::sort(sorted.begin(), sorted.end());  // the point's index breaks ties

  std::vector<std::size_t> runs;  // start of each voxel's range
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].first != sorted[i - 1].first) runs.push_back(i);
  }
  const auto M = static_cast<std::int64_t>(runs.size());
  runs.push_back(sorted.size());

  auto* out_coords = arrays.create("out_coords", {M, 4});
  float* features = arrays.create_floats("features", {M, columns});
  for (std::int64_t m = 0; m < M; ++m) {
    const std::size_t begin = runs[static_cast<std::size_t>(m)];
    const std::size_t end = runs[static_cast<std::size_t>(m) + 1];
    write_voxel(problem.grid, sorted[begin].first, out_coords, m);
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i)
        sum += double{arrays.points[sorted[i].second * columns + c]};
      features[m * columns + c] =
          mean_of(problem.grid, c, sum, static_cast<std::int64_t>(end - begin));
    }
  }
}

}  // namespace

extern const Implementation<VoxelizeArrays> sorted_points = {
    .run = run,
};

}  // namespace convladder::cpu_reference::voxelize
