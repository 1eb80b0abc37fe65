/// @file double_buffered.cu
/// @brief Double buffering: the next tiles are prefetched during the arithmetic.
///
/// - Before: warp_tiles.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The tiles of the next step are loaded into registers before the arithmetic of this
/// step, and stored after it, into the second of two pairs of tiles. No thread reads the pair that
/// other threads write, so that one barrier per step suffices:
///
///     registers -> shared   A: 0 |          B: 1 |          A: 2 |
///     global -> registers        | 1 . . .       | 2 . . .       |      time ->
///     arithmetic                 | A ========    | B ========    | A ===
///
/// A prefetch costs only the registers or the buffer that receives the data. Loads from shared
/// memory are prefetched in the same way: the operands of the next k are loaded before the
/// arithmetic of this k.
///
/// **Expect.** No stalls on global memory, and half of the barriers: one for 8 steps along k.
/// Predicted on an H200: 43 TFLOP/s at 4096 (3.2 ms).
/// @expect barriers_per_block 64 / 8 = 8, one a step
/// @expect loads_per_output.a 64 / 32 / 4 = 0.5, no more than before
/// @expect loads_per_output.shared 64 * (1 + 1) / (4 * 4) = 8
/// **Costs.** 8 more registers per thread, for the float4 of a and of b in flight, and twice the
/// shared memory (16.6 KB). Not supported: as before.
/// **Try.** Store the prefetched tiles before the arithmetic. On what does the warp stall now?
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
    gemm_double_buffered(Product product, TileMapProblem map) {
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kThreads = kThreadsOf<Shape>;
  constexpr int kThreadM = Shape::kThreadM, kThreadN = Shape::kThreadN;
  constexpr int kDown = Shape::kLanesM, kAcross = 32 / kDown;            // threads of a warp
  constexpr int kWarpM = kDown * kThreadM, kWarpN = kAcross * kThreadN;  // its part of the tile
  constexpr int kWarps = kTileN / kWarpN;                                // across the tile
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp fills four rows of 16 columns, which thereby meet 32 banks.
  __shared__ __align__(16) float a_tiles[2][kBlockK][kTileM + 4];
  __shared__ __align__(16) float b_tiles[2][kBlockK][kTileN];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int row = warp / kWarps * kWarpM + lane / kAcross * 4;  // its first ones
  const int column = warp % kWarps * kWarpN + lane % kAcross * 4;
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  float sums[kThreadM][kThreadN] = {};

  constexpr int kLoadsA = kTileM * kBlockK / 4 / kThreads,
                kLoadsB = kTileN * kBlockK / 4 / kThreads;
  float4 a_fours[kLoadsA], b_fours[kLoadsB];  // on their way
  const auto fetch = [&](std::int64_t k0) {
  // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = (thread + i * kThreads) / (kBlockK / 4), k = thread % (kBlockK / 4) * 4;
      a_fours[i] = load_four<kAligned>(product.a, product.M, product.K, m0 + m, k0 + k);
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = (thread + i * kThreads) / (kTileN / 4), n = thread % (kTileN / 4) * 4;
      b_fours[i] = load_four<kAligned>(product.b, product.K, product.N, k0 + k, n0 + n);
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = (thread + i * kThreads) / (kBlockK / 4), k = thread % (kBlockK / 4) * 4;
      a_tiles[buffer][k][m] = a_fours[i].x;
      a_tiles[buffer][k + 1][m] = a_fours[i].y;
      a_tiles[buffer][k + 2][m] = a_fours[i].z;
      a_tiles[buffer][k + 3][m] = a_fours[i].w;
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = (thread + i * kThreads) / (kTileN / 4), n = thread % (kTileN / 4) * 4;
      *reinterpret_cast<float4*>(&b_tiles[buffer][k][n]) = b_fours[i];
    }
  };

  float a[2][kThreadM], b[2][kThreadN];  // of this k and of the next one
  const auto read = [&](int buffer, int k) {
#pragma unroll
    for (int i = 0; i < kThreadM; i += 4) {
      read_four(&a_tiles[buffer][k][row + i * kDown], &a[k % 2][i]);
    }
#pragma unroll
    for (int j = 0; j < kThreadN; j += 4) {
      read_four(&b_tiles[buffer][k][column + j * kAcross], &b[k % 2][j]);
    }
  };

  fetch(0);
  store(0);
  __syncthreads();  // separates these stores from the loads of the first step
  int buffer = 0;
  for (std::int64_t k0 = 0; k0 < product.K; k0 += kBlockK) {
    const bool more = k0 + kBlockK < product.K;
    if (more) fetch(k0 + kBlockK);
    read(buffer, 0);
#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      if (k + 1 < kBlockK) read(buffer, k + 1);
        // Odd rows run backwards: each multiply-add then shares an operand with the one before,
        // which need not be read from the register file again.
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int s = 0; s < kThreadN; ++s) {
          const int j = i % 2 == 0 ? s : kThreadN - 1 - s;
          sums[i][j] += a[k % 2][i] * b[k % 2][j];
        }
      }
    }
    buffer ^= 1;
    if (!more) break;
    // The other pair of tiles was last read one step ago, before that step's barrier.
    store(buffer);
    __syncthreads();  // separates these stores, and the loads above, from the next step's
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
  const auto kernel = rows_are_aligned(product) ? gemm_double_buffered<Shape, true>
                                                : gemm_double_buffered<Shape, false>;
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

extern const Implementation<GemmArrays> double_buffered = {
    .supports = supports_whole_tiles,
    .run = run,
    .tile = tile_for,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
