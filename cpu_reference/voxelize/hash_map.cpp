/// @file hash_map.cpp
/// @brief Hash map: voxels are keys, and each entry sums its points.
///
/// - After: sorted_points.cpp
/// - The semantics: core/voxelize_problem.hpp, core/voxel_grid.hpp
///
/// **The idea.** A LiDAR sweep is a list of points in scan order; a sparse network needs each voxel
/// once, with features. A hash map finds the entry of each point's voxel; for a new voxel, an entry
/// is appended. The point is added to the entry. At the end the entries are sorted by key, and sums
/// are divided by counts.
///
///     points    a   b   c   d   e        entries    key 7:  a + c      2 points
///     keys      7   3   7   -   3                   key 3:  b + e      2 points
///                           outside     rows       3: (b + e) / 2     7: (a + c) / 2
///
/// The accumulators are in double. The sum of 420 coordinates near 206,497 m is 8.7 x 10^7 m, where
/// floats are 8 m apart: with float accumulators, the mean of such points in one voxel of 1 m has
/// an error of 0.9 m.
///
/// **Expect.** One look-up per point, and a sort of the voxels; a LiDAR sweep has half as many
/// voxels as points. Accumulators in double take 8 bytes per number instead of 4.
/// **Costs.** Hash maps have no locality. Without the final sort, the voxels are in the order of
/// their first points, which reduces the locality of every layer of the network.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder::cpu_reference::voxelize {
namespace {

/// A voxel and the number of its points.
struct Entry {
  std::int64_t key = 0;
  std::int32_t points = 0;
  std::size_t sums = 0;  ///< Index of the sums over its points.
};

/// points [points][columns] to out_coords [M][4] and features [M][columns].
void run(const VoxelizeProblem& problem, const VoxelizeArrays& arrays, const Context&) {
  const std::int64_t columns = problem.columns;
  std::vector<Entry> entries;
  std::vector<double> sums;                              // [entries][columns]
  std::unordered_map<std::int64_t, std::size_t> places;  // indices of entries, sorted by key
  for (std::int64_t n = 0; n < problem.points; ++n) {
    const float* point = arrays.points + n * columns;
    const std::int64_t key = key_of_point(problem.grid, point);
    if (key == kNoVoxel) continue;
    const auto [place, is_new] = places.emplace(key, entries.size());
    if (is_new) {
      entries.push_back({.key = key, .sums = sums.size()});
      sums.resize(sums.size() + static_cast<std::size_t>(columns));
    }
    Entry& entry = entries[place->second];
    ++entry.points;
    for (std::int64_t c = 0; c < columns; ++c)
      sums[entry.sums + static_cast<std::size_t>(c)] += double{point[c]};
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });

  const auto M = static_cast<std::int64_t>(entries.size());
  auto* out_coords = arrays.create("out_coords", {M, 4});
  float* features = arrays.create_floats("features", {M, columns});
  for (std::int64_t m = 0; m < M; ++m) {
    const Entry& entry = entries[static_cast<std::size_t>(m)];
    write_voxel(problem.grid, entry.key, out_coords, m);
    for (std::int64_t c = 0; c < columns; ++c)
      features[m * columns + c] =
          mean_of(problem.grid, c, sums[entry.sums + static_cast<std::size_t>(c)], entry.points);
  }
}

}  // namespace

extern const Implementation<VoxelizeArrays> hash_map = {
    .run = run,
};

}  // namespace convladder::cpu_reference::voxelize
