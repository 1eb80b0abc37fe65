/// @file maps.cu
/// @brief Tile maps in closed form: a block computes its tile from its index, as kernels do.
///
/// - Before: cuda_naive/tile_map/row_major.cu
/// - The formulas: tile_map.cuh
/// - The same maths: cpu_reference/tile_map/maps.cpp (as walks)
///
/// **The idea.** The order of tiles is a nest of loops, but a block must compute its tile directly.
/// Decomposing the index of a step gives the loop counters: by division and remainder where loops
/// have fixed lengths, by shift and mask where these are powers of two.
///
///     map               grid (x, y)                     tile m                  tile n
///     row_major         tiles_m * tiles_n, 1            x / tiles_n             x % tiles_n
///     identity<N>       tiles_m * t, ceil(tiles_n/t)    x / t                   y * t + x % t
///     horizontal        tiles_n, tiles_m                y                       x
///     split_k, batched  tiles_m, tiles_n                x                       y
///     grouped           tiles_m * tiles_n, 1            g * group + i % g'      i / g'
///     hilbert           squares * side^2, 1             two bits of x a level, mirrored
///     stream_k          min(blocks, all k-steps), 1     from k-step x * share + min(x, remainder)
///
/// t is the width of a super-column, g the rows of a group, group = x / (g * tiles_n), i the
/// remainder, g' the rows of this group (the last may have fewer). z is the GEMM, or with split_k
/// GEMM * splits + split. To show a map as the hardware applies it, this rung launches the map's
/// real grid, one thread per block: once to count units, once to write them.
///
/// **Expect.** Three launches. A map takes a kernel tens of instructions (hilbert: ten per level).
/// @expect launches 3
/// @expect blocks 2 * 16 * 16 + 1 = 513, counted, summed up, written
/// @expect footprint.workspace 8 * 16 * 16 = 2048, 8 bytes a block
/// **Costs.** 8 bytes of workspace per block; the host waits for the number of units.
/// **Try.** Let every other super-column of identity<N> run upwards. Which formula changes, and
/// what do consecutive blocks share at its ends then that they did not share before?
#include "core/cuda/device_array.hpp"
#include "core/implementation.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::tile_map {
namespace {

constexpr int kScanThreads = 1024;

/// This block's index in launch order.
__device__ std::int64_t block_index() {
  return blockIdx.x + (blockIdx.y + std::int64_t{blockIdx.z} * gridDim.y) * gridDim.x;
}

/// units_of [blocks]: how many units each block has. Grid: the map's; one thread a block.
__global__ void tile_map_maps_count_units(TileMapProblem map, std::int64_t* units_of) {
  std::int64_t count = 0;
  for_each_unit(map, [&](const Unit&) { ++count; });
  units_of[block_index()] = count;
}

/// Turns the counts into the sums up to and including each, in place. One block of 1024 threads.
__global__ void tile_map_maps_running_sum(std::int64_t* counts, std::int64_t blocks) {
  __shared__ std::int64_t before[kScanThreads];  // the sum of all counts before a thread's segment
  const std::int64_t length = ceil_div<std::int64_t>(blocks, kScanThreads);
  const std::int64_t begin = threadIdx.x * length < blocks ? threadIdx.x * length : blocks;
  const std::int64_t end = begin + length < blocks ? begin + length : blocks;
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += counts[i];
  before[threadIdx.x] = sum;
  __syncthreads();  // all segments are summed before thread 0 adds them up
  if (threadIdx.x == 0) {
    std::int64_t total = 0;
    for (std::int64_t& segment : before) {
      const std::int64_t own = segment;
      segment = total;
      total += own;
    }
  }
  __syncthreads();  // thread 0 is done before the others read its sums
  sum = before[threadIdx.x];
  for (std::int64_t i = begin; i < end; ++i) counts[i] = sum += counts[i];
}

/// units [units_up_to[blocks - 1]][6]. Grid: the map's; one thread a block.
__global__ void tile_map_maps_write_units(TileMapProblem map, const std::int64_t* units_up_to,
                                          std::int32_t* units) {
  const std::int64_t block = block_index();
  std::int64_t row = block == 0 ? 0 : units_up_to[block - 1];
  for_each_unit(map, [&](const Unit& unit) {
    std::int32_t* to = units + row * kUnitColumns;
    to[0] = static_cast<std::int32_t>(block);
    to[1] = unit.batch;
    to[2] = unit.tile.m;
    to[3] = unit.tile.n;
    to[4] = unit.k_begin;
    to[5] = unit.k_end;
    ++row;
  });
}

std::int64_t blocks_of(const TileMapProblem& map) {
  const BlockGrid grid = grid_of(map);
  return grid.x * grid.y * grid.z;
}

std::size_t workspace_bytes(const TileMapProblem& map) {
  return static_cast<std::size_t>(blocks_of(map)) * sizeof(std::int64_t);
}

void run(const TileMapProblem& map, const TileMapArrays& arrays, const Context& context) {
  const std::int64_t blocks = blocks_of(map);
  auto* units_up_to = context.workspace_as<std::int64_t>();
  launch(tile_map_maps_count_units, {launch_grid(map), dim3(1)}, map, units_up_to);
  launch(tile_map_maps_running_sum, {dim3(1), dim3(kScanThreads)}, units_up_to, blocks);
  std::int64_t units = 0;
  download(units_up_to + blocks - 1, 1, &units);
  auto* rows = arrays.create("units", {units, kUnitColumns});
  launch(tile_map_maps_write_units, {launch_grid(map), dim3(1)}, map, units_up_to, rows);
}

std::string choice_in_words(const TileMapProblem& map) { return map_in_words(map); }

}  // namespace

extern const Implementation<TileMapArrays> maps = {
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::tile_map
