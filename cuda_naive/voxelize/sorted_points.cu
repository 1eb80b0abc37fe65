/// @file sorted_points.cu
/// @brief voxelize, first on the GPU: keys are sorted by a library, and a thread adds up a run.
///
/// - Before: cpu_reference/voxelize/sorted_points.cpp
/// - After: cuda_optimized/voxelize/bit_grid.cu
/// - The same maths: cpu_reference/voxelize/sorted_points.cpp
///
/// **The idea.** Each step of the sorted list is a kernel: a thread a point makes its key, the
/// library sorts keys with the numbers of their points, a thread an entry says whether a run begins
/// there, and a running sum over those ones and zeros numbers the runs. Then the thread at each
/// run's head walks along it.
///
///     sorted keys    3 3 7 7 7 9 -        points without a voxel have the largest key
///     heads          1 0 1 0 0 1 0
///     row            0   1     2          heads before: a running sum
///
/// The sort is stable, so a run has its points in their own order, and sums have one order, too:
/// the result is the same in every run, and the CPU's to the last bit.
///
/// **Expect.** In a LiDAR sweep, 240 thousand points on 80 x 1600 x 1600 cells (sweep-points), keys
/// have 28 bits, and a radix sort passes over the pairs of 12 bytes four times. Keys and rows are
/// small beside what launches cost: three of ours and some of the library's, and the host waits
/// once for the number of runs. Threads at heads walk, the others have nothing to do: of a warp as
/// many work as it has heads, as long as its longest run. Accumulators are in double: six million
/// FP64 instructions are 0.2 us of an H200, and 10 us of a consumer GPU with 1/64 of its FP32 rate.
/// Predicted on an H200: 80 us, as with accumulators in float.
/// @expect launches 5, of which the sort and the sum are one each here
/// @expect lanes.points.load 11616 + 4 * 3441 = 25380, keys; and again those in the range
/// @expect lanes.features.store 4 * 2316 = 9264, voxels
/// **Costs.** 36 bytes a point. A voxel with very many points keeps one thread busy for long, and
/// of more than four columns each four walk along the run once more.
/// **Try.** Let each thread at a head copy its row number to its run, and a thread a point add with
/// atomicAdd. What becomes faster, and what is lost?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder::BACKEND::cuda_naive::voxelize {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more points, threads stride.
constexpr int kColumns = 4;                   ///< That a thread adds up at a time.

/// keys [points]: that of each point's voxel; of a point without one voxel_count(), which is larger
/// than all. rows [points]: 0, 1, 2 ... Any one-dimensional grid.
__global__ void voxelize_sorted_points_number_points(VoxelizeProblem problem, const float* points,
                                                     std::int64_t* keys, std::int32_t* rows) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::int64_t key = key_of_point(problem.grid, points + n * problem.columns);
    keys[n] = key == kNoVoxel ? voxel_count(problem.grid) : key;
    rows[n] = static_cast<std::int32_t>(n);
  }
}

/// heads [points]: 1 where the run of a voxel begins, else 0. Any one-dimensional grid.
/// @param keys [points], ascending
__global__ void voxelize_sorted_points_mark_heads(VoxelizeProblem problem, const std::int64_t* keys,
                                                  std::int32_t* heads) {
  const std::int64_t no_voxel = voxel_count(problem.grid);
  for (const std::int64_t i : grid_stride(problem.points))
    heads[i] = keys[i] != no_voxel && (i == 0 || keys[i] != keys[i - 1]);
}

/// out_coords [M][4] and features [M][columns]: a thread a run. Any one-dimensional grid.
/// @param keys, rows, heads, runs [points]: as sorted; the runs that begin before each
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
