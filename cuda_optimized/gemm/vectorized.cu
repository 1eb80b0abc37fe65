/// @file vectorized.cu
/// @brief Vector access: 16-byte loads and stores; a is transposed on its way to shared memory.
///
/// - Before: register_tile.cu
/// - After: warp_tiles.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A float4 is one instruction for four floats. Rows of b and c can be accessed as
/// float4 directly. But rows of a run along k, and the inner loop reads columns of a: a thread
/// loads four steps of k of one row, and stores them into four rows of a transposed tile.
///
///        a, in memory                        a_tile [k][m], in shared memory
///              k ->
///        m   | x y z w | . . . .              m ->   x . . .       a warp stores 16 columns of two
///        |   | . . . . |                   k         y             rows, four apart; with 4 floats
///            one float4 of a thread        |         z             between the rows, four rows are
///                                                    w             16 banks: all 32 differ
///
/// In the inner loop, a thread reads eight values of a as two float4 that lie half a tile apart,
/// and b likewise. Eight adjacent values would not do: the float4 loads of a warp would lie 32
/// bytes apart, and each would use half of the banks twice.
///
/// **Expect.** A quarter of the load instructions: 4 for 64 multiply-adds, 1/16 each. The bytes
/// stay: 4 loads of 32 lanes x 16 bytes are 2 KB, which take 16 cycles at 128 bytes per cycle, as
/// long as the 64 multiply-adds. The limit is that of register_tile.cu, but loads take a quarter of
/// the issue slots. Predicted on an H200: 33 TFLOP/s at 4096 (4.2 ms).
/// @expect loads_per_output.shared 64 * (1 + 1) / (4 * 4) = 8, vectors; in a small tile 4 x 4
/// accumulators
/// @expect loads_per_output.a 64 / 32 / 4 = 0.5
/// @expect bytes_per_lane.c.store 16
/// @expect excess.shared.store 0, thanks to the 4 floats
/// **Costs.** Arrays must be aligned to 16 bytes, and K and N be multiples of 4; otherwise a second
/// kernel loads single floats. 128 registers. Not supported: as before.
/// **Try.** Remove the 4 padding floats of a's rows, and count the bank conflicts.
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
  static constexpr int kTileM = 64, kTileN = 128, kThreadM = 8, kThreadN = 8;
};
struct Medium {
  static constexpr int kTileM = 64, kTileN = 64, kThreadM = 4, kThreadN = 8;
};
struct Small {
  static constexpr int kTileM = 32, kTileN = 32, kThreadM = 4, kThreadN = 4;
};
template <class Shape>
constexpr int kThreadsOf = Shape::kTileM / Shape::kThreadM * (Shape::kTileN / Shape::kThreadN);

/// A tile of c for each block. Grid: the map's. Block (kThreadsOf<Shape>).
/// @tparam kAligned see rows_are_aligned()
template <class Shape, bool kAligned>
__global__ void __launch_bounds__(kThreadsOf<Shape>, kBlocks * 256 / kThreadsOf<Shape>)
    gemm_vectorized(Product product, TileMapProblem map) {
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kThreads = kThreadsOf<Shape>;
  constexpr int kThreadM = Shape::kThreadM, kThreadN = Shape::kThreadN;
  constexpr int kDown = kTileM / kThreadM, kAcross = kTileN / kThreadN;  // threads of a block
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp fills four rows of 16 columns, which thereby meet 32 banks.
  __shared__ __align__(16) float a_tile[kBlockK][kTileM + 4];
  __shared__ __align__(16) float b_tile[kBlockK][kTileN];

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kAcross * 4, column = thread % kAcross * 4;  // its first ones
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
      rows_are_aligned(product) ? gemm_vectorized<Shape, true> : gemm_vectorized<Shape, false>;
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

extern const Implementation<GemmArrays> vectorized = {
    .supports = supports_whole_tiles,
    .run = run,
    .tile = tile_for,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
