/// @file hash_map.cpp
/// @brief voxelize, rung 1: a hash map from voxels to what they hold so far, point after point.
///
/// - After: sorted_points.cpp
/// - The semantics: core/voxelize_problem.hpp, core/voxel_grid.hpp
///
/// **The idea.** A sweep is a list of points, in the order in which a scanner met them; a sparse
/// network wants voxels, each once, with features. So each point asks a hash map for its voxel. If
/// the voxel is new it gets an entry, and in any case it gets the point's numbers. At the end the
/// entries are sorted by key, and sums are divided by counts.
///
///     points    a   b   c   d   e        entries    key 7:  a + c      2 points
///     keys      7   3   7   -   3                   key 3:  b + e      2 points
///                           outside     rows       3: (b + e) / 2     7: (a + c) / 2
///
/// **Expect.** A look-up a point, and a sort of the voxels: in a LiDAR sweep half as many as
/// points.
/// **Costs.** Hash maps jump through memory. Programs that stop here, without the sort, have voxels
/// in the order of their first points, and every layer of the network pays for it.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder::cpu_reference::voxelize {
namespace {

/// A voxel, and the sums over its points.
struct Entry {
  std::int64_t key = 0;
  std::int32_t points = 0;
  std::array<float, 4> sums = {};
};

/// points [points][columns] to out_coords [M][4] and features [M][columns].
void run(const VoxelizeProblem& problem, const VoxelizeArrays& arrays, const Context&) {
  const std::int64_t columns = problem.columns;
  std::vector<Entry> entries;
  std::unordered_map<std::int64_t, std::size_t> places;  // of entries, by key
  for (std::int64_t n = 0; n < problem.points; ++n) {
    const float* point = arrays.points + n * columns;
    const std::int64_t key = key_of_point(problem.grid, point);
    if (key == kNoVoxel) continue;
    const auto [place, is_new] = places.emplace(key, entries.size());
    if (is_new) entries.push_back({.key = key});
    Entry& entry = entries[place->second];
    ++entry.points;
    for (std::int64_t c = 0; c < columns; ++c) entry.sums[static_cast<std::size_t>(c)] += point[c];
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
          entry.sums[static_cast<std::size_t>(c)] / static_cast<float>(entry.points);
  }
}

}  // namespace

extern const Implementation<VoxelizeArrays> hash_map = {
    .run = run,
};

}  // namespace convladder::cpu_reference::voxelize
