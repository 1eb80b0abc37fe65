/// @file point_lists.cu
/// @brief voxelize: ordered point lists; counting and filling lists gives each sum a fixed order.
///
/// - Before: bit_grid.cu
/// - The prefix sum over words: cuda_optimized/rulebook/shared/bit_ranks.cuh
/// - The same maths: cpu_reference/voxelize/sorted_points.cpp
///
/// **The idea.** Atomic floating-point additions occur in varying order, and the rounding depends
/// on it. bit_grid.cu adds integers, with nine atomics a point. Here one integer atomic a point
/// suffices: it counts the voxel's points. A prefix sum over the counts gives the start of each
/// list, and the points are filled in.
///
///     counts   2   1   3          begins   0   2   3   6
///     list     4 0   2   7 1 5             in arrival order: differs between runs
///     ordered  0 4   2   1 5 7             index = how many of the list are smaller
///
/// Each entry counts the smaller ones in its list, which gives its index. Lists are short: two
/// points in a sweep, a few dozen near the sensor. Then one thread per voxel adds its list in the
/// order of the points, in double: the CPU's results to the last bit, without a sort.
///
/// **Expect.** As bit_grid.cu up to the ranks. One atomic a point replaces nine; there are two more
/// launches. For sweep-points on an H200, 55 us are predicted, 57 us for bit_grid and 80 us for the
/// sort.
/// @expect launches 8, with the running sum
/// @expect lanes.workspace.atomic (1 + 1) * 3441 + 1 = 6883, bits and counts
/// @expect lanes.workspace.store 2447 + 4096 + 4 * 3441 + 4097 = 24404, lists and their begins
/// **Costs.** As bit_grid.cu; the time of a list grows with the square of its length.
/// **Try.** Leave out the ordering: how do two runs differ if every second value is scaled by 1e12?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/voxelize_problem.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"

namespace convladder::BACKEND::cuda_optimized::voxelize {
namespace {

using rulebook::bit_of, rulebook::BitIndex;
namespace bit_ranks = rulebook::bit_ranks;
using bit_ranks::Count, bit_ranks::kMaxBlocks, bit_ranks::kThreads, bit_ranks::Progress;

constexpr std::int64_t kMaxVoxels = (std::int64_t{1} << 31) - 1;
constexpr int kColumns = 4;  ///< Columns that a thread adds at a time.

/// A point's voxel, or kNone.
constexpr std::uint32_t kNone = 0xffffffff;
__device__ std::uint32_t cell_of(const VoxelizeProblem& problem, const float* points,
                                 std::int64_t n) {
  return static_cast<std::uint32_t>(key_of_point(problem.grid, points + n * problem.columns));
}

/// Sets the bits of all voxels with points. Any one-dimensional grid. @param bits all zero
__global__ void voxelize_point_lists_set_bits(VoxelizeProblem problem, const float* points,
                                              std::uint32_t* bits) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::uint32_t cell = cell_of(problem, points, n);
    if (cell != kNone) atomicOr(&bits[cell / 32], bit_of(cell));
  }
}

/// sums [tiles + 1]: the number of bits in all previous tiles; the total is also written to host
/// memory. A block of kThreads, any one-dimensional grid.
__global__ void voxelize_point_lists_count_bits(std::int64_t tiles, const std::uint32_t* bits,
                                                std::uint32_t* sums, Progress* progress,
                                                Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  bit_ranks::count_tiles(tiles, gridDim.x, bits, sums, warp_sums);
  bit_ranks::scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// first [words], and the voxels with points in order: cells [M]. A block of kThreads, any
/// one-dimensional grid.
__global__ void voxelize_point_lists_number_voxels(std::int64_t tiles, const std::uint32_t* bits,
                                                   const std::uint32_t* sums, std::uint32_t* first,
                                                   std::uint32_t* cells) {
  __shared__ bit_ranks::TileInShared shared;
  bit_ranks::number_bits(
      tiles, gridDim.x, bits, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// Each point gets an index in the list of its row: rows [points], -1 where it has no voxel, and
/// places [points]. counts [points] must be zero. Any one-dimensional grid.
__global__ void voxelize_point_lists_claim_slots(VoxelizeProblem problem, const float* points,
                                                 BitIndex index, std::int32_t* rows,
                                                 std::int32_t* places, std::int32_t* counts) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::uint32_t cell = cell_of(problem, points, n);
    rows[n] = -1;
    if (cell == kNone) continue;
    const auto row = static_cast<std::int32_t>(index.rank(cell, index.bits[cell / 32]));
    rows[n] = row;
    places[n] = atomicAdd(&counts[row], 1);
  }
}

/// lists: the points of each row, from begins[row] on, in any order. Any one-dimensional grid.
__global__ void voxelize_point_lists_fill_lists(std::int64_t points, const std::int32_t* rows,
                                                const std::int32_t* places,
                                                const std::int64_t* begins, std::int32_t* lists) {
  for (const std::int64_t n : grid_stride(points)) {
    if (rows[n] >= 0) lists[begins[rows[n]] + places[n]] = static_cast<std::int32_t>(n);
  }
}

/// ordered: the points of each row, ascending. A thread an entry of the lists. Any one-dimensional
/// grid.
__global__ void voxelize_point_lists_order_lists(std::int64_t points, const std::int32_t* rows,
                                                 const std::int64_t* begins,
                                                 const std::int32_t* lists, std::int32_t* ordered) {
  const std::int64_t entries = begins[points];
  for (const std::int64_t i : grid_stride(entries)) {
    const std::int32_t n = lists[i], row = rows[n];
    std::int64_t place = begins[row];
    for (std::int64_t other = begins[row]; other < begins[row + 1]; ++other)
      place += lists[other] < n;
    ordered[place] = n;
  }
}

/// out_coords [M][4] and features [M][columns] of cells [M] and their points. Any one-dimensional
/// grid.
__global__ void voxelize_point_lists_write_means(VoxelizeProblem problem, std::int64_t M,
                                                 const float* points, const std::uint32_t* cells,
                                                 const std::int64_t* begins,
                                                 const std::int32_t* ordered,
                                                 std::int32_t* out_coords, float* features) {
  const std::int64_t columns = problem.columns;
  for (const std::int64_t m : grid_stride(M)) {
    write_voxel(problem.grid, cells[m], out_coords, m);
    const std::int64_t begin = begins[m], end = begins[m + 1];
    for (std::int64_t first = 0; first < columns; first += kColumns) {
      double sums[kColumns] = {};
      for (std::int64_t i = begin; i < end; ++i) {
        const float* point = points + ordered[i] * columns + first;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (first + c < columns) sums[c] += double{point[c]};
        }
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (first + c < columns)
          features[m * columns + first + c] =
              mean_of(problem.grid, first + c, sums[c], end - begin);
      }
    }
  }
}

Declined supports(const VoxelizeProblem& problem) {
  if (voxel_count(problem.grid) > kMaxVoxels) return "grids of fewer than 2^31 voxels only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  Progress* progress;        ///< Shared by the kernels.
  std::uint32_t* bits;       ///< A bit for each voxel, in whole tiles.
  std::int32_t* counts;      ///< By row; there are at most as many rows as points.
  std::size_t zeroed_bytes;  ///< Leading bytes of the workspace that must be zero before the first
                             ///< launch.
  std::uint32_t* sums;       ///< Indexed by tile.
  std::uint32_t* first;      ///< Indexed by word.
  std::uint32_t* cells;      ///< Indexed by row.
  std::int64_t* begins;      ///< By row, of its list; for as many as points, and one more.
  std::int32_t* rows;        ///< By point.
  std::int32_t* places;      ///< By point, in its list; then the lists in order.
  std::int32_t* lists;       ///< Points, row by row.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const VoxelizeProblem& problem, std::byte* begin) {
  const std::int64_t tiles = bit_ranks::tiles_for(voxel_count(problem.grid)), n = problem.points;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.progress = cutter.take<Progress>(1);
  work.bits = cutter.take<std::uint32_t>(tiles * bit_ranks::kTileWords);
  work.counts = cutter.take<std::int32_t>(n);
  work.zeroed_bytes = cutter.bytes();
  work.sums = cutter.take<std::uint32_t>(tiles + 1);
  work.first = cutter.take<std::uint32_t>(tiles * bit_ranks::kTileWords);
  work.cells = cutter.take<std::uint32_t>(n);
  work.begins = cutter.take<std::int64_t>(n + 1);
  work.rows = cutter.take<std::int32_t>(n);
  work.places = cutter.take<std::int32_t>(n);
  work.lists = cutter.take<std::int32_t>(n);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const VoxelizeProblem& problem) {
  return workspace_at(problem, nullptr).bytes;
}

/// points [points][columns] to out_coords [M][4] and features [M][columns].
void run(const VoxelizeProblem& problem, const VoxelizeArrays& arrays, const Context& context) {
  const float* points = arrays.points;
  const Workspace work = workspace_at(problem, context.workspace_as<std::byte>());
  const std::int64_t tiles = bit_ranks::tiles_for(voxel_count(problem.grid)), n = problem.points;
  const LaunchConfig all = {blocks_for(n, kThreads, kMaxBlocks), kThreads};
  const LaunchConfig by_tile = {blocks_for(tiles, 1, kMaxBlocks), kThreads};
  HostMessage<Count> message;

  check(cudaMemsetAsync(work.progress, 0, work.zeroed_bytes, current_stream()));
  launch(voxelize_point_lists_set_bits, all, problem, points, work.bits);
  launch(voxelize_point_lists_count_bits, by_tile, tiles, work.bits, work.sums, work.progress,
         message.letter());
  message.expect();
  launch(voxelize_point_lists_number_voxels, by_tile, tiles, work.bits, work.sums, work.first,
         work.cells);
  launch(voxelize_point_lists_claim_slots, all, problem, points, BitIndex{work.bits, work.first},
         work.rows, work.places, work.counts);
  exclusive_sum(work.counts, work.begins, n);
  launch(voxelize_point_lists_fill_lists, all, n, work.rows, work.places, work.begins, work.lists);
  std::int32_t* ordered = work.places;  // which is no longer needed
  launch(voxelize_point_lists_order_lists, all, n, work.rows, work.begins, work.lists, ordered);

  const std::int64_t M = message.received().found;  // the kernels that build the lists are running
  auto* out_coords = arrays.create("out_coords", {M, 4});
  float* features = arrays.create_floats("features", {M, problem.columns});
  launch(voxelize_point_lists_write_means, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, problem,
         M, points, work.cells, work.begins, ordered, out_coords, features);
}

std::string choice_in_words(const VoxelizeProblem& problem) {
  return bit_ranks::tiles_in_words(bit_ranks::tiles_for(voxel_count(problem.grid)));
}

}  // namespace

extern const Implementation<VoxelizeArrays> point_lists = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::voxelize
