/// @file sorted_points.cu
/// @brief Sort: keys are sorted by CUB, then one thread per voxel adds its points.
///
/// - Before: cpu_reference/voxelize/sorted_points.cpp
/// - After: cuda_optimized/voxelize/bit_grid.cu
///
/// **The idea.** Each step is a kernel: one thread per point computes its key, CUB sorts the keys
/// together with the indices of the points, one thread per entry tests whether a new key begins
/// there (a head), and a prefix sum over the heads numbers the voxels. Then the thread at each head
/// adds the points of its voxel.
///
///     sorted keys    3 3 7 7 7 9 -        points without a voxel have the largest key
///     heads          1 0 1 0 0 1 0
///     row            0   1     2          heads before: a running sum
///
/// The sort is stable, so the points of a voxel keep their order, and the order of summation is
/// fixed: the result has the same bits in every run, and the bits of the CPU rung.
///
/// **Expect.** A LiDAR sweep has 240 thousand points in 80 x 1600 x 1600 cells (sweep-points). Keys
/// have 28 bits, so the radix sort makes four passes over 12-byte entries. Launch overheads and one
/// host synchronisation dominate. Accumulators are in double: 6 million FP64 instructions.
/// @expect launches 5, of which the sort and the sum are one each here
/// @expect lanes.points.load 11616 + 4 * 3441 = 25380, keys; and again those in the range
/// @expect lanes.features.store 4 * 2316 = 9264, voxels
/// **Costs.** 36 bytes per point. A voxel with very many points occupies one thread for long; for
/// every further four columns, its points are read again.
/// **Try.** Let each thread at a head copy its row number to its points' entries, and let one
/// thread per point add with atomicAdd. What becomes faster, and what is lost?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder::BACKEND::cuda_naive::voxelize {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more points, a thread processes several
                                              ///< (grid-stride loop).
constexpr int kColumns = 4;                   ///< Columns that a thread sums at a time.

/// keys [points]: the key of each point's voxel; for a point without a voxel, voxel_count(), which
/// is larger than every key. rows [points]: 0, 1, 2 ... Launch with any one-dimensional grid.
__global__ void voxelize_sorted_points_number_points(VoxelizeProblem problem, const float* points,
                                                     std::int64_t* keys, std::int32_t* rows) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::int64_t key = key_of_point(problem.grid, points + n * problem.columns);
    keys[n] = key == kNoVoxel ? voxel_count(problem.grid) : key;
    rows[n] = static_cast<std::int32_t>(n);
  }
}

/// heads [points]: 1 where the first point of a voxel is, else 0. Launch with any one-dimensional
/// grid.
/// @param keys [points], ascending
__global__ void voxelize_sorted_points_mark_heads(VoxelizeProblem problem, const std::int64_t* keys,
                                                  std::int32_t* heads) {
  const std::int64_t no_voxel = voxel_count(problem.grid);
  for (const std::int64_t i : grid_stride(problem.points))
    heads[i] = keys[i] != no_voxel && (i == 0 || keys[i] != keys[i - 1]);
}

/// out_coords [M][4] and features [M][columns]: one thread per voxel. Launch with any
/// one-dimensional grid.
/// @param keys, rows, heads, runs [points]: in sorted order; `runs` is the prefix sum of the heads
__global__ void voxelize_sorted_points_add_runs(VoxelizeProblem problem, const float* points,
                                                const std::int64_t* keys, const std::int32_t* rows,
                                                const std::int32_t* heads, const std::int64_t* runs,
                                                std::int32_t* out_coords, float* features) {
  const std::int64_t columns = problem.columns;
  for (const std::int64_t begin : grid_stride(problem.points)) {
    if (heads[begin] == 0) continue;
    const std::int64_t key = keys[begin], m = runs[begin];
    write_voxel(problem.grid, key, out_coords, m);
    for (std::int64_t first = 0; first < columns; first += kColumns) {
      double sums[kColumns] = {};
      std::int64_t i = begin;
      for (; i < problem.points && keys[i] == key; ++i) {
        const float* point = points + rows[i] * columns + first;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (first + c < columns) sums[c] += double{point[c]};
        }
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (first + c < columns)
          features[m * columns + first + c] = mean_of(problem.grid, first + c, sums[c], i - begin);
      }
    }
  }
}

/// points [points][columns] to out_coords [M][4] and features [M][columns].
void run(const VoxelizeProblem& problem, const VoxelizeArrays& arrays, const Context&) {
  const std::int64_t n = problem.points;
  const float* points = arrays.points;
  const DeviceArray<std::int64_t> unsorted_keys(n), keys(n), runs(n + 1);
  const DeviceArray<std::int32_t> unsorted_rows(n), rows(n), heads(n);
  const LaunchConfig all = {blocks_for(n, kThreads, kMaxBlocks), kThreads};

  launch(voxelize_sorted_points_number_points, all, problem, points, unsorted_keys.data(),
         unsorted_rows.data());
  sort_pairs(unsorted_keys.data(), unsorted_rows.data(), keys.data(), rows.data(), n,
             key_bits(voxel_count(problem.grid)));
  launch(voxelize_sorted_points_mark_heads, all, problem, keys.data(), heads.data());
  exclusive_sum(heads.data(), runs.data(), n);

  const std::int64_t M = downloaded(runs.data() + n);
  auto* out_coords = arrays.create("out_coords", {M, 4});
  float* features = arrays.create_floats("features", {M, problem.columns});
  launch(voxelize_sorted_points_add_runs, all, problem, points, keys.data(), rows.data(),
         heads.data(), runs.data(), out_coords, features);
}

}  // namespace

extern const Implementation<VoxelizeArrays> sorted_points = {
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::voxelize
