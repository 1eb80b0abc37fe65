/// @file warp_tiles.cu
/// @brief Warp tiles: a warp computes a compact part of the tile, which needs fewer distinct
/// shared-memory words per load.
///
/// - Before: vectorized.cu
/// - After: double_buffered.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The assignment of elements of c to threads is free, and determines which words the
/// 32 threads of a warp read together. A warp of 2 x 16 threads covers 16 rows and 128 columns of
/// c, so for each k it reads 16 + 128 floats. A warp of 4 x 8 threads covers 32 x 64, and reads 96:
///
///     16 x 128                           32 x 64
///     + - - - - - - - - - - - - - - - +  + - - - - - - - +
///     + - - - - - - - - - - - - - - - +  |               |
///                                        + - - - - - - - +
///
/// So the tile of a block is divided among warps first, then among threads. shared/thread_tile.cuh
/// shows the 4 x 4 pieces of a thread; it is the inner part of the GEMMs of other ladders, too.
///
/// **Expect.** A third less traffic from shared memory; instructions and registers stay. The loads
/// of vectorized.cu take as long as the arithmetic, so only stalls are saved where both meet: a few
/// per cent. Predicted on an H200: 35 TFLOP/s at 4096 (3.9 ms).
/// @expect loads_per_output.shared 64 * (1 + 1) / (4 * 4) = 8, the instructions stay
/// @expect excess.shared.load 0
/// @expect bytes_per_lane.shared.load 16, how many of them lanes share is not counted
/// **Costs.** Two more divisions before the loop. Not supported: as before.
/// **Try.** Set kLanesM to 16 in Large. How many floats does a warp read per k, and which test
/// notices?
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kBlockK = 8;                   ///< Depth of a step.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

// A block's tile of c, what of it a thread computes, and how many threads of a warp are below one
// another.
struct Large {
  static constexpr int kTileM = 128, kTileN = 128, kThreadM = 8, kThreadN = 8, kLanesM = 4;
};
struct Wide {
  static constexpr int kTileM = 64, kTileN = 128, kThreadM = 8, kThreadN = 8, kLanesM = 8;
};
struct Medium {
  static constexpr int kTileM = 64, kTileN = 64, kThreadM = 8, kThreadN = 8, kLanesM = 4;
};
struct Small {
  static constexpr int kTileM = 32, kTileN = 32, kThreadM = 4, kThreadN = 4, kLanesM = 4;
};
template <class Shape>
constexpr int kThreadsOf = Shape::kTileM / Shape::kThreadM * (Shape::kTileN / Shape::kThreadN);

/// A tile of c for each block. Grid: the map's. Block (kThreadsOf<Shape>).
/// @tparam kAligned see rows_are_aligned()
template <class Shape, bool kAligned>
__global__ void __launch_bounds__(kThreadsOf<Shape>, kBlocks * 256 / kThreadsOf<Shape>)
    gemm_warp_tiles(Product product, TileMapProblem map) {
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kThreads = kThreadsOf<Shape>;
  constexpr int kThreadM = Shape::kThreadM, kThreadN = Shape::kThreadN;
  constexpr int kDown = Shape::kLanesM, kAcross = 32 / kDown;            // threads of a warp
  constexpr int kWarpM = kDown * kThreadM, kWarpN = kAcross * kThreadN;  // its part of the tile
  constexpr int kWarps = kTileN / kWarpN;                                // across the tile
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp fills four rows of 16 columns, which thereby meet 32 banks.
  __shared__ __align__(16) float a_tile[kBlockK][kTileM + 4];
  __shared__ __align__(16) float b_tile[kBlockK][kTileN];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int row = warp / kWarps * kWarpM + lane / kAcross * 4;  // its first ones
  const int column = warp % kWarps * kWarpN + lane % kAcross * 4;
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  float sums[kThreadM][kThreadN] = {};

  for (std::int64_t k0 = 0; k0 < product.K; k0 += kBlockK) {
    // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
#pragma unroll
    for (int i = 0; i < kTileM * kBlockK / 4; i += kThreads) {
      const int m = (thread + i) / (kBlockK / 4), k = thread % (kBlockK / 4) * 4;
      const float4 four = load_four<kAligned>(product.a, product.M, product.K, m0 + m, k0 + k);
      a_tile[k][m] = four.x;
      a_tile[k + 1][m] = four.y;
      a_tile[k + 2][m] = four.z;
      a_tile[k + 3][m] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kTileN * kBlockK / 4; i += kThreads) {
      const int k = (thread + i) / (kTileN / 4), n = thread % (kTileN / 4) * 4;
      *reinterpret_cast<float4*>(&b_tile[k][n]) =
          load_four<kAligned>(product.b, product.K, product.N, k0 + k, n0 + n);
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      float a[kThreadM], b[kThreadN];
#pragma unroll
      for (int i = 0; i < kThreadM; i += 4) read_four(&a_tile[k][row + i * kDown], &a[i]);
#pragma unroll
      for (int j = 0; j < kThreadN; j += 4) read_four(&b_tile[k][column + j * kAcross], &b[j]);
        // Odd rows run backwards: each multiply-add then shares an operand with the one before,
        // which need not be read from the register file again.
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int s = 0; s < kThreadN; ++s) {
          const int j = i % 2 == 0 ? s : kThreadN - 1 - s;
          sums[i][j] += a[i] * b[j];
        }
      }
    }
    __syncthreads();  // separates these loads from the next step's stores
  }

#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; j += 4) {
      const int m = row + i / 4 * 4 * kDown + i % 4, n = column + j * kAcross;
      store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n,
                           {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]});
    }
  }
}

template <class Shape>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const TileMapProblem tiles = tiles_of(gemm, {Shape::kTileM, Shape::kTileN}, kBlockK, gemm.map);
  const auto kernel =
      rows_are_aligned(product) ? gemm_warp_tiles<Shape, true> : gemm_warp_tiles<Shape, false>;
  launch(kernel, {tile_map::launch_grid(tiles), dim3(kThreadsOf<Shape>)}, product, tiles);
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

std::string choice_in_words(const GemmProblem& gemm) { return rows_in_words(gemm); }

}  // namespace

extern const Implementation<GemmArrays> warp_tiles = {
    .supports = supports_whole_tiles,
    .run = run,
    .tile = tile_for,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
