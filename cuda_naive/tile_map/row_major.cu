/// @file row_major.cu
/// @brief Row-major map: a block computes its tile's row and column by a division and a remainder.
///
/// - Before: cpu_reference/tile_map/maps.cpp
/// - After: cuda_optimized/tile_map/maps.cu
///
/// **The idea.** On a GPU, no central scheduler assigns tiles: a block has only its index, from
/// which it computes its tile. For row-major order this is a division and a remainder.
///
///     blockIdx.x = 0 1 2 3      m = blockIdx.x / tiles_n     0 0 0 0
///                  4 5 6 7      n = blockIdx.x % tiles_n     1 1 1 1  and  0 1 2 3 ...
///     blockIdx.z = batch
///
/// **Expect.** A few dozen instructions per block, which is negligible beside the thousands of a
/// tile's GEMM. The locality of the map is poor: P concurrent blocks span P / tiles_n tile rows but
/// all tile columns.
/// @expect blocks 16 * 16 = 256, a tile each
/// @expect lanes_per_output.units.store 1
/// @expect launches 1
/// **Costs.** Supports the map row_major only.
/// **Try.** Exchange the roles of m and n, so that neighbouring blocks are in one column. For which
/// shapes do concurrent blocks then need fewer tile rows and columns in total?
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::BACKEND::cuda_naive::tile_map {
namespace {

/// units [batch * tiles_m * tiles_n][6]: block, batch, tile m and n, first k-step, last k-step + 1.
/// Launch with grid (tiles_m * tiles_n, 1, <= batch), one thread per block.
__global__ void tile_map_row_major(TileMapProblem map, std::int32_t* units) {
  const int m = static_cast<int>(blockIdx.x) / map.tiles_n;
  const int n = static_cast<int>(blockIdx.x) % map.tiles_n;
  // grid.z is limited to 65535: with more GEMMs, block z computes z, z + gridDim.z, ... one after
  // the other. The first blocks then have one unit more than the others.
  const int z = static_cast<int>(blockIdx.z), planes = static_cast<int>(gridDim.z);
  const int each = map.batch / planes, more = map.batch % planes;
  const std::int64_t units_before =
      std::int64_t{gridDim.x} * (std::int64_t{z} * each + (z < more ? z : more)) +
      std::int64_t{blockIdx.x} * (each + (z < more ? 1 : 0));
  std::int32_t* unit = units + units_before * kUnitColumns;
  for (std::int64_t batch = z; batch < map.batch; batch += planes) {
    unit[0] = static_cast<std::int32_t>(blockIdx.z * gridDim.x + blockIdx.x);  // in launch order
    unit[1] = static_cast<std::int32_t>(batch);
    unit[2] = m;
    unit[3] = n;
    unit[4] = 0;
    unit[5] = map.k_steps;
    unit += kUnitColumns;
  }
}

Declined supports(const TileMapProblem& map) {
  if (map.map != TileMap::row_major) return "knows only the map row_major";
  return {};
}

void run(const TileMapProblem& map, const TileMapArrays& arrays, const Context&) {
  const std::int64_t tiles = std::int64_t{map.tiles_m} * map.tiles_n;
  auto* units = arrays.create("units", {map.batch * tiles, kUnitColumns});
  // Not blocks_for(): the assignment of work to blocks is the result of this rung.
  const dim3 grid(static_cast<unsigned>(tiles), 1,
                  static_cast<unsigned>(std::min(std::int64_t{map.batch}, kMaxGridYZ)));
  launch(tile_map_row_major, {grid, dim3(1)}, map, units);
}

}  // namespace

extern const Implementation<TileMapArrays> row_major = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::tile_map
