/// @file register_tile.cu
/// @brief Register tile: each thread holds 8 x 8 accumulators, so that every loaded value is used 8
/// times.
///
/// - Before: tiled.cu
/// - After: vectorized.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Shared memory delivers 32 floats per cycle, and an SM can start 128 multiply-adds.
/// So each value from shared memory must be reused from registers: with 8 values of a column of a
/// and 8 of a row of b, a thread updates 64 accumulators. The tile of a block grows from 32 x 32 to
/// 128 x 128, which also divides the loads from global memory by four. It is 8 deep instead of 32:
/// 8 KB of shared memory suffice.
///
///              b0 b1 ... b7          one step along k, one thread:
///            + - - - - - - - +       8 + 8 loads, 64 multiply-adds
///        a0  | + + + + + + + |
///        a1  | + + + + + + + |       the 8 rows are 16 apart, the 8 columns too: a warp reads
///        ... |               |       16 neighbouring numbers of b, and 2 of a
///        a7  | + + + + + + + |
///            + - - - - - - - +
///
/// **Expect.** 1/4 load from shared memory per multiply-add, where tiled.cu has 2: without stalls,
/// arithmetic and shared memory would both be busy. With two barriers per step, and no load in
/// flight during the arithmetic, predicted on an H200: 25 TFLOP/s at 4096 (5.5 ms).
/// @expect loads_per_output.shared 64 * (2 + 2) / (2 * 2) = 64, in a small tile 2 x 2 accumulators
/// per thread
/// @expect loads_per_output.a 64 / 32 = 2, small tiles have 32 x 32
/// @expect barriers_per_block 2 * 64 / 8 = 16, two a step of 8
/// @expect excess.shared.load 0
/// **Costs.** Up to 128 registers per thread: two blocks of 256 threads per SM. Small problems use
/// smaller tiles, down to 2 x 2 accumulators per thread. Not supported: as before.
/// **Try.** Give each thread eight adjacent rows and columns instead of every sixteenth. How many
/// bank conflicts does a warp's load of b have now?
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kBlockK = 8;                   ///< Depth of a step.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

// A block's tile of c, and what of it a thread computes: rows, columns.
struct Large {
  static constexpr int kTileM = 128, kTileN = 128, kThreadM = 8, kThreadN = 8;
};
struct Wide {
  static constexpr int kTileM = 64, kTileN = 128, kThreadM = 4, kThreadN = 8;
};
struct Medium {
  static constexpr int kTileM = 64, kTileN = 64, kThreadM = 4, kThreadN = 4;
};
struct Small {
  static constexpr int kTileM = 32, kTileN = 32, kThreadM = 2, kThreadN = 2;
};
template <class Shape>
constexpr int kThreadsOf = Shape::kTileM / Shape::kThreadM * (Shape::kTileN / Shape::kThreadN);

/// A tile of c for each block. Grid: the map's. Block (kThreadsOf<Shape>).
template <class Shape>
__global__ void __launch_bounds__(kThreadsOf<Shape>, kBlocks)
    gemm_register_tile(Product product, TileMapProblem map) {
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kThreads = kThreadsOf<Shape>;
  constexpr int kThreadM = Shape::kThreadM, kThreadN = Shape::kThreadN;
  constexpr int kDown = kTileM / kThreadM, kAcross = kTileN / kThreadN;  // threads of a block
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp fills four rows of 8 columns, which thereby meet 32 banks.
  __shared__ float a_tile[kBlockK][kTileM + 4];
  __shared__ float b_tile[kBlockK][kTileN];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % kAcross, ty = thread / kAcross;
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  float sums[kThreadM][kThreadN] = {};

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
      float a[kThreadM], b[kThreadN];
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) a[i] = a_tile[k][ty + i * kDown];
#pragma unroll
      for (int j = 0; j < kThreadN; ++j) b[j] = b_tile[k][tx + j * kAcross];
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadN; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // separates these loads from the next step's stores
  }

#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; ++j) {
      const std::int64_t m = m0 + ty + i * kDown, n = n0 + tx + j * kAcross;
      if (m < product.M && n < product.N) product.c[m * product.N + n] = sums[i][j];
    }
  }
}

template <class Shape>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const TileMapProblem tiles = tiles_of(gemm, {Shape::kTileM, Shape::kTileN}, kBlockK, gemm.map);
  launch(gemm_register_tile<Shape>, {tile_map::launch_grid(tiles), dim3(kThreadsOf<Shape>)},
         product, tiles);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const Product product = product_of(gemm, arrays);
  switch (shape_for(gemm)) {
    case TileShape::large: return launch_with<Large>(gemm, product);
    case TileShape::wide: return launch_with<Wide>(gemm, product);
    case TileShape::medium: return launch_with<Medium>(gemm, product);
    case TileShape::small: return launch_with<Small>(gemm, product);
  }
}

}  // namespace

extern const Implementation<GemmArrays> register_tile = {
    .supports = supports_whole_tiles,
    .run = run,
    .tile = tile_for,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
