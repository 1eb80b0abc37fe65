/// @file tiled.cu
/// @brief Shared-memory tiles: a block stages tiles of a and b, and computes a tile of c in any
/// tile order.
///
/// - Before: cuda_naive/gemm/direct.cu
/// - After: register_tile.cu
/// - For convolutions: shared/tiled_batched.cu, the same for any strides, images and groups
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The 32 x 32 elements of c that a block computes need 32 rows of a and 32 columns
/// of b, and each of those elements is needed 32 times. The block steps along k by 32: each of its
/// 1024 threads loads one element of a and one of b into shared memory, and after a barrier all
/// threads multiply from there. A tile map selects the block's tile of c; the result is the same
/// for each map.
///
///     c tile 32 x 32 += a tile [32][k..k+32] * b tile [k..k+32][32]     2 x 1024 loads from memory
///     a warp loads a row of each tile, and computes a row of c          1024 x 32 multiply-adds
///
/// **Expect.** Loads from memory fall by a factor of 32, to 1/16 per multiply-add. They are
/// replaced by two loads from shared memory per multiply-add; nvcc combines four loads of a row of
/// a, which leaves 1.25. An SM serves one load of a warp per cycle: at most 1/5 of the arithmetic
/// peak, but the caches are no longer the limit.
/// @expect loads_per_output.a 64 / 32 = 2, once for 32 columns
/// @expect loads_per_output.b 64 / 32 = 2, once for 32 rows
/// @expect loads_per_output.shared 2 * 64 = 128, as written
/// @expect barriers_per_block 2 * 64 / 32 = 4, two a step of 32
/// **Costs.** Two barriers per step; 8192 bytes of shared memory and 1024 threads per block. Edge
/// tiles are computed as whole tiles: with M = 1, one thread in 32 has an element. Not supported:
/// tile maps with parts of tiles.
/// **Try.** Use 32 x 8 threads, each with four elements of a column of c. How many loads from
/// shared memory does a multiply-add need now?
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kTile = 32;  ///< Rows and columns of every tile: a, b and c.
constexpr int kThreads = kTile * kTile;

/// A tile of 32 x 32 of c for each block, one element a thread. Grid: the map's. Block (32, 32).
__global__ void __launch_bounds__(kThreads) gemm_tiled(Product product, TileMapProblem map) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t m0 = std::int64_t{tile.m} * kTile, n0 = std::int64_t{tile.n} * kTile;
  float sum = 0.0f;

  for (std::int64_t k0 = 0; k0 < product.K; k0 += kTile) {
    // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
    a_tile[ty][tx] = m0 + ty < product.M && k0 + tx < product.K
                         ? product.a[(m0 + ty) * product.K + k0 + tx]
                         : 0.0f;
    b_tile[ty][tx] = k0 + ty < product.K && n0 + tx < product.N
                         ? product.b[(k0 + ty) * product.N + n0 + tx]
                         : 0.0f;
    __syncthreads();  // separates these stores from the loads below
    for (int k = 0; k < kTile; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();  // separates these loads from the next step's stores
  }

  const std::int64_t m = m0 + ty, n = n0 + tx;
  if (m < product.M && n < product.N) product.c[m * product.N + n] = sum;
}

OutputTile tile(const GemmProblem&) { return {kTile, kTile}; }

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_floats(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm, tile(gemm), kTile, gemm.map));
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const Product product = product_of(gemm, arrays);
  const TileMapProblem tiles = tiles_of(gemm, tile(gemm), kTile, gemm.map);
  launch(gemm_tiled, {tile_map::launch_grid(tiles), dim3(kTile, kTile)}, product, tiles);
}

}  // namespace

extern const Implementation<GemmArrays> tiled = {
    .supports = supports,
    .run = run,
    .tile = tile,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
