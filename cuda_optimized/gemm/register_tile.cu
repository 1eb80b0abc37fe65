/// @file register_tile.cu
/// @brief gemm: a thread computes 8 x 8 elements of c, held in registers.
///
/// - Before: tiled.cu
/// - After: vectorized.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** In a cycle, shared memory hands out 32 numbers, and an SM could start 128
/// multiply-adds. So what comes from shared memory must be used several times, and registers are
/// the place to keep it: with 8 numbers of a column of a and 8 of a row of b, a thread adds to 64
/// sums. The block's tile grows from 32 x 32 to 128 x 128, so that four times less is loaded from
/// global memory, too. It is 8 deep instead of 32: 8 KB of shared memory are enough.
///
///              b0 b1 ... b7          one step along k, one thread:
///            + - - - - - - - +       8 + 8 loads, 64 multiply-adds
///        a0  | + + + + + + + |
///        a1  | + + + + + + + |       the 8 rows are 16 apart, the 8 columns too: a warp reads
///        ... |               |       16 neighbouring numbers of b, and 2 of a
///        a7  | + + + + + + + |
///            + - - - - - - - +
///
/// **Expect.** 1/4 load from shared memory for each multiply-add, where tiled has 2: the pipelines
/// of the arithmetic and of shared memory would both be full, if nothing ever waited. With two
/// barriers a step, and no load on its way during the arithmetic, predicted on an H200: 25 TFLOP/s
/// at 4096 (5.5 ms).
/// **Costs.** Up to 128 registers a thread: two blocks of 256 threads an SM. Small products get
/// smaller tiles, down to 2 x 2 elements a thread. Declines what tiled declines.
/// **Try.** Give each thread eight neighbouring rows and columns instead of every sixteenth one.
/// The result is the same. How many banks does a warp's load of b meet now?
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kSide = 16;  ///< Threads along each axis of a block's tile.
constexpr int kThreads = kSide * kSide;
constexpr int kBlockK = 8;                   ///< Depth of a step.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

/// A tile of 16 kElementsM x 16 kElementsN of c for each block, kElementsM x kElementsN a thread.
/// Grid: the map's. Block (256).
template <int kElementsM, int kElementsN>
__global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_register_tile(Product product, TileMapProblem map) {
  constexpr int kTileM = kSide * kElementsM, kTileN = kSide * kElementsN;
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp fills four rows of 8 columns, which thereby meet 32 banks.
  __shared__ float a_tile[kBlockK][kTileM + 4];
  __shared__ float b_tile[kBlockK][kTileN];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // the whole block, at once

  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % kSide, ty = thread / kSide;
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  float sums[kElementsM][kElementsN] = {};

  for (std::int64_t k0 = 0; k0 < product.K; k0 += kBlockK) {
    // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
#pragma unroll
    for (int i = thread; i < kTileM * kBlockK; i += kThreads) {
      const int m = i / kBlockK, k = i % kBlockK;
      a_tile[k][m] = m0 + m < product.M && k0 + k < product.K
                         ? product.a[(m0 + m) * product.K + k0 + k]
                         : 0.0f;
    }
#pragma unroll
    for (int i = thread; i < kTileN * kBlockK; i += kThreads) {
      const int k = i / kTileN, n = i % kTileN;
      b_tile[k][n] = k0 + k < product.K && n0 + n < product.N
                         ? product.b[(k0 + k) * product.N + n0 + n]
                         : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      float a[kElementsM], b[kElementsN];
#pragma unroll
      for (int i = 0; i < kElementsM; ++i) a[i] = a_tile[k][ty + i * kSide];
#pragma unroll
      for (int j = 0; j < kElementsN; ++j) b[j] = b_tile[k][tx + j * kSide];
#pragma unroll
      for (int i = 0; i < kElementsM; ++i) {
#pragma unroll
        for (int j = 0; j < kElementsN; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // separates these loads from the next step's stores
  }

#pragma unroll
  for (int i = 0; i < kElementsM; ++i) {
#pragma unroll
    for (int j = 0; j < kElementsN; ++j) {
      const std::int64_t m = m0 + ty + i * kSide, n = n0 + tx + j * kSide;
      if (m < product.M && n < product.N) product.c[m * product.N + n] = sums[i][j];
    }
  }
}

template <TileShape kShape>
void launch_with(const GemmProblem& gemm, const Product& product) {
  constexpr OutputTile kTile = extents_of(kShape);
  const TileMapProblem tiles = tiles_of(gemm, kTile, kBlockK, gemm.map);
  launch(gemm_register_tile<kTile.rows / kSide, kTile.columns / kSide>,
         {tile_map::launch_grid(tiles), dim3(kThreads)}, product, tiles);
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
  const Product product = product_of(gemm, arrays);
  switch (shape_for(gemm)) {
    case TileShape::large: return launch_with<TileShape::large>(gemm, product);
    case TileShape::wide: return launch_with<TileShape::wide>(gemm, product);
    case TileShape::medium: return launch_with<TileShape::medium>(gemm, product);
    case TileShape::small: return launch_with<TileShape::small>(gemm, product);
  }
}

}  // namespace

Implementation<GemmProblem> register_tile() {
  return {.supports = supports_whole_tiles, .run = run, .tile = tile_for};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
