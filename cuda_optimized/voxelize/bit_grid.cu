/// @file bit_grid.cu
/// @brief voxelize: bitmap of voxels; a row is the rank of its bit, sums are added in fixed point.
///
/// - Before: cuda_naive/voxelize/sorted_points.cu
/// - After: point_lists.cu
/// - The prefix sum over words: cuda_optimized/rulebook/shared/bit_ranks.cuh
/// - The same maths: cpu_reference/voxelize/hash_map.cpp
///
/// **The idea.** Rows are in the order of keys, so a voxel's row is the number of occupied voxels
/// before it. Every point sets the bit of its voxel by `atomicOr`. The number of bits before it,
/// from a prefix sum over words, is its *rank*: the row.
///
///     voxels     . . x . | x x . . | . . . . | . x . x       4 to a word here, 32 there
///     first          0         1         3         3          bits in the words before
///     rows           0     1 2                   3   4         + bits below in the word
///
/// Atomics then add each point to its voxel's row, in any order. A floating-point sum depends on
/// that order, an integer sum does not. `atomicMax` finds the largest magnitude per column of a
/// voxel, then each value is added as a multiple of 2^-53 of that magnitude's power of two.
///
/// **Expect.** In a LiDAR sweep (sweep-points) 25.6 MB of bits and 15.4 MB of sums are zeroed; L2
/// serves 2.4 million atomics, ten a point. Predicted on an H200: 57 us, 9 us more than with sums
/// in double (zeros: 2 us; launch for maxima: 7 us).
/// @expect launches 6
/// @expect lanes.workspace.atomic (1 + 4 + 1 + 4) * 3441 + 1 = 34411, bits, maxima, counts, sums
/// @expect lanes.workspace.store 2316 + 128 + 3 = 2447, voxels; words; sums of a tile
/// @expect lanes.points.load 3 * 11616 + 2 * 4 * 3441 = 62376, each key is found three times
/// @expect bytes.workspace.atomic (1 + 4 + 1) * 4 * 3441 + 4 * 8 * 3441 + 4 = 192700
/// **Costs.** Memory and time grow with the volume, plus 72 bytes a point. Up to 2^31 voxels.
/// **Try.** Combine lanes with the same voxel first (`__match_any_sync`).
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

/// A point's voxel, or kNone.
constexpr std::uint32_t kNone = 0xffffffff;
__device__ std::uint32_t cell_of(const VoxelizeProblem& problem, const float* points,
                                 std::int64_t n) {
  return static_cast<std::uint32_t>(key_of_point(problem.grid, points + n * problem.columns));
}

/// Sets the bits of all voxels with points. Any one-dimensional grid. @param bits all zero
__global__ void voxelize_bit_grid_set_bits(VoxelizeProblem problem, const float* points,
                                           std::uint32_t* bits) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::uint32_t cell = cell_of(problem, points, n);
    if (cell != kNone) atomicOr(&bits[cell / 32], bit_of(cell));
  }
}

/// sums [tiles + 1]: the number of bits in all previous tiles; the total is also written to host
/// memory. A block of kThreads, any one-dimensional grid.
__global__ void voxelize_bit_grid_count_bits(std::int64_t tiles, const std::uint32_t* bits,
                                             std::uint32_t* sums, Progress* progress,
                                             Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  bit_ranks::count_tiles(tiles, gridDim.x, bits, sums, warp_sums);
  bit_ranks::scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// first [words], and the voxels with points in order: cells [M]. A block of kThreads, any
/// one-dimensional grid.
__global__ void voxelize_bit_grid_number_voxels(std::int64_t tiles, const std::uint32_t* bits,
                                                const std::uint32_t* sums, std::uint32_t* first,
                                                std::uint32_t* cells) {
  __shared__ bit_ranks::TileInShared shared;
  bit_ranks::number_bits(
      tiles, gridDim.x, bits, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// A sum of floats that has the same bits in any order: an integer multiple of a unit. All zero at
/// first. Where `largest` is not finite, `units` counts infinities and `overflows` the negative
/// ones.
struct alignas(16) Sum {
  std::uint32_t largest;     ///< The largest magnitude, as bits of a float; above all, NaN.
  std::int32_t overflows;    ///< The sum is 2^64 * overflows + units, with units as signed.
  unsigned long long units;  ///< Of 2^-shift(largest) each.
};

constexpr std::uint32_t kInfinity = 0x7f800000;  ///< As bits of a float.
constexpr int kUnitBits = 53;                    ///< Of a magnitude's power of two, to the unit.

/// The binary exponent of 1 / unit.
__device__ int shift(std::uint32_t largest) {
  const auto biased = static_cast<int>(largest >> 23);
  return kUnitBits + 127 - (biased > 0 ? biased : 1);  // subnormals have the exponent of 1, too
}

__device__ std::uint32_t magnitude(float number) { return __float_as_uint(number) & 0x7fffffff; }

/// Adds a number to a sum whose `largest` is known.
__device__ void add(Sum* sum, float number) {
  const std::uint32_t largest = sum->largest;
  if (largest >= kInfinity) {
    if (magnitude(number) != kInfinity) return;
    atomicAdd(&sum->units, 1);
    if (number < 0) atomicAdd(&sum->overflows, 1);
    return;
  }
  // Less than 2^54, so that no voxel of 512 points or fewer overflows.
  const auto units = static_cast<long long>(ldexp(double{number}, shift(largest)));
  const auto more = static_cast<unsigned long long>(units);
  const auto before = static_cast<long long>(atomicAdd(&sum->units, more));
  const auto after = static_cast<long long>(static_cast<unsigned long long>(before) + more);
  if ((after < before) != (units < 0)) atomicAdd(&sum->overflows, units < 0 ? -1 : 1);
}

/// The sum as a double, with the result of IEEE arithmetic where values are not finite.
__device__ double value_of(const Sum& sum) {
  if (sum.largest >= kInfinity) {
    const double infinity = __uint_as_float(sum.largest);  // or NaN
    const auto negative = static_cast<unsigned long long>(sum.overflows);
    if (negative == 0) return infinity;
    return negative == sum.units ? -infinity : infinity - infinity;
  }
  const double units = ldexp(static_cast<double>(sum.overflows), 64) +
                       static_cast<double>(static_cast<long long>(sum.units));
  return ldexp(units, -shift(sum.largest));
}

/// visit(n, row) for each point that has a voxel. Any one-dimensional grid.
template <class Visit>
__device__ void visit_points(const VoxelizeProblem& problem, const float* points,
                             const BitIndex& index, const Visit& visit) {
  for (const std::int64_t n : grid_stride(problem.points)) {
    const std::uint32_t cell = cell_of(problem, points, n);
    if (cell != kNone) visit(n, index.rank(cell, index.bits[cell / 32]));
  }
}

/// The largest magnitudes of the points of each row, in totals [M][columns], and their number:
/// counts [M]. Both must be zero. Any one-dimensional grid.
__global__ void voxelize_bit_grid_find_largest(VoxelizeProblem problem, const float* points,
                                               BitIndex index, Sum* totals, std::int32_t* counts) {
  const std::int64_t columns = problem.columns;
  visit_points(problem, points, index, [&](std::int64_t n, std::int64_t row) {
    for (std::int64_t c = 0; c < columns; ++c)
      atomicMax(&totals[row * columns + c].largest, magnitude(points[n * columns + c]));
    atomicAdd(&counts[row], 1);
  });
}

/// Adds each point to the sums of its row, totals [M][columns]. Any one-dimensional grid.
__global__ void voxelize_bit_grid_add_points(VoxelizeProblem problem, const float* points,
                                             BitIndex index, Sum* totals) {
  const std::int64_t columns = problem.columns;
  visit_points(problem, points, index, [&](std::int64_t n, std::int64_t row) {
    for (std::int64_t c = 0; c < columns; ++c)
      add(&totals[row * columns + c], points[n * columns + c]);
  });
}

/// out_coords [M][4] and features [M][columns] of cells [M], totals and counts. Any one-dimensional
/// grid.
__global__ void voxelize_bit_grid_write_means(VoxelizeProblem problem, std::int64_t M,
                                              const std::uint32_t* cells, const Sum* totals,
                                              const std::int32_t* counts, std::int32_t* out_coords,
                                              float* features) {
  const std::int64_t columns = problem.columns;
  for (const std::int64_t m : grid_stride(M)) {
    write_voxel(problem.grid, cells[m], out_coords, m);
    for (std::int64_t c = 0; c < columns; ++c)
      features[m * columns + c] =
          mean_of(problem.grid, c, value_of(totals[m * columns + c]), counts[m]);
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
  Sum* totals;               ///< The same, [columns] each.
  std::size_t zeroed_bytes;  ///< Leading bytes of the workspace that must be zero before the first
                             ///< launch.
  std::uint32_t* sums;       ///< Indexed by tile.
  std::uint32_t* first;      ///< Indexed by word.
  std::uint32_t* cells;      ///< Indexed by row.
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
  work.totals = cutter.take<Sum>(n * problem.columns);
  work.zeroed_bytes = cutter.bytes();
  work.sums = cutter.take<std::uint32_t>(tiles + 1);
  work.first = cutter.take<std::uint32_t>(tiles * bit_ranks::kTileWords);
  work.cells = cutter.take<std::uint32_t>(n);
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
  const std::int64_t tiles = bit_ranks::tiles_for(voxel_count(problem.grid));
  const LaunchConfig all = {blocks_for(problem.points, kThreads, kMaxBlocks), kThreads};
  const LaunchConfig by_tile = {blocks_for(tiles, 1, kMaxBlocks), kThreads};
  HostMessage<Count> message;

  check(cudaMemsetAsync(work.progress, 0, work.zeroed_bytes, current_stream()));
  launch(voxelize_bit_grid_set_bits, all, problem, points, work.bits);
  launch(voxelize_bit_grid_count_bits, by_tile, tiles, work.bits, work.sums, work.progress,
         message.letter());
  message.expect();
  launch(voxelize_bit_grid_number_voxels, by_tile, tiles, work.bits, work.sums, work.first,
         work.cells);
  const BitIndex index{work.bits, work.first};
  launch(voxelize_bit_grid_find_largest, all, problem, points, index, work.totals, work.counts);
  launch(voxelize_bit_grid_add_points, all, problem, points, index, work.totals);

  const std::int64_t M = message.received().found;  // the kernels that add the points are running
  auto* out_coords = arrays.create("out_coords", {M, 4});
  float* features = arrays.create_floats("features", {M, problem.columns});
  launch(voxelize_bit_grid_write_means, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, problem, M,
         work.cells, work.totals, work.counts, out_coords, features);
}

std::string choice_in_words(const VoxelizeProblem& problem) {
  return bit_ranks::tiles_in_words(bit_ranks::tiles_for(voxel_count(problem.grid)));
}

}  // namespace

extern const Implementation<VoxelizeArrays> bit_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::voxelize
