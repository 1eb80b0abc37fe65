/// @file warp_tiles.cu
/// @brief gemm: a warp's part of the tile is compact, and the next tiles come during the
/// arithmetic.
///
/// - Before: vectorized.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Two ideas. A warp of 2 x 16 threads covers 16 rows and 128 columns of c, so for
/// each k it reads 16 + 128 floats. Arranged 4 x 8 it covers 32 x 64, and reads 96:
///
///     16 x 128                           32 x 64
///     + - - - - - - - - - - - - - - - +  + - - - - - - - +
///     + - - - - - - - - - - - - - - - +  |               |
///                                        + - - - - - - - +
///
/// And the tiles of the next step are loaded into registers before the arithmetic of this one, and
/// stored after it, into the other one of two pairs of tiles. No thread reads the pair that others
/// write, so that one barrier a step is enough:
///
///     registers -> shared   A: 0 |          B: 1 |          A: 2 |
///     global -> registers        | 1 . . .       | 2 . . .       |      time ->
///     arithmetic                 | A ========    | B ========    | A ===
///
/// **Expect.** A third less traffic from shared memory, no waiting for global memory, and half of
/// the barriers: one for 8 steps along k. Predicted on an H200: 43 TFLOP/s at 4096 (3.2 ms).
/// **Costs.** 8 more registers a thread, for the float4 of a and of b on their way, and twice the
/// shared memory (16.6 KB). Declines what register_tile declines.
/// **Try.** Store the fetched tiles before the arithmetic. What does the warp wait for now?
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/four.cuh"
#include "cuda_optimized/gemm/gemm_plan.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kBlockK = 8;  ///< Depth of a step.
/// The 32 threads of a warp are 4 x 8, in Wide 8 x 4.
using Large = ThreadTile<128, 128, kBlockK, 8, 8, 4>;
using Wide = ThreadTile<64, 128, kBlockK, 8, 8, 8>;
using Medium = ThreadTile<64, 64, kBlockK, 8, 8, 4>;
using Small = ThreadTile<32, 32, kBlockK, 4, 4, 4>;
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

/// A tile of c for each block. Grid: the map's. Block (Tile::kThreads).
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    gemm_warp_tiles(Product product, TileMapProblem map) {
  constexpr int kLoadsA = Tile::kBlockM * kBlockK / 4 / Tile::kThreads;  // float4 of each thread
  constexpr int kLoadsB = Tile::kBlockN * kBlockK / 4 / Tile::kThreads;
  constexpr int kFoursA = kBlockK / 4, kFoursB = Tile::kBlockN / 4;  // in a row of a, of b
  constexpr int kPitchA = Tile::kBlockM + 4, kPitchB = Tile::kBlockN;
  __shared__ __align__(16) float a_tiles[2][kBlockK * kPitchA];
  __shared__ __align__(16) float b_tiles[2][kBlockK * kPitchB];

  tile_map::Tile place;
  if (!tile_map::tile_of_block(map, &place)) return;  // the whole block, at once

  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t m0 = std::int64_t{place.m} * Tile::kBlockM;
  const std::int64_t n0 = std::int64_t{place.n} * Tile::kBlockN;
  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};

  float4 a_fours[kLoadsA], b_fours[kLoadsB];  // on their way
  const auto fetch = [&](std::int64_t k0) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = (thread + i * Tile::kThreads) / kFoursA, k = thread % kFoursA * 4;
      a_fours[i] = load_four<kAligned>(product.a, product.M, product.K, m0 + m, k0 + k);
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = (thread + i * Tile::kThreads) / kFoursB, n = thread % kFoursB * 4;
      b_fours[i] = load_four<kAligned>(product.b, product.K, product.N, k0 + k, n0 + n);
    }
  };
  const auto store = [&](float* a_tile, float* b_tile) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = (thread + i * Tile::kThreads) / kFoursA, k = thread % kFoursA * 4;
      float* to = a_tile + k * kPitchA + m;
      to[0] = a_fours[i].x;
      to[kPitchA] = a_fours[i].y;
      to[2 * kPitchA] = a_fours[i].z;
      to[3 * kPitchA] = a_fours[i].w;
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = (thread + i * Tile::kThreads) / kFoursB, n = thread % kFoursB * 4;
      *reinterpret_cast<float4*>(b_tile + k * kPitchB + n) = b_fours[i];
    }
  };

  fetch(0);
  store(a_tiles[0], b_tiles[0]);
  __syncthreads();  // separates these stores from the loads of the first step
  int buffer = 0;
  for (std::int64_t k0 = 0; k0 < product.K; k0 += kBlockK) {
    const bool more = k0 + kBlockK < product.K;
    if (more) fetch(k0 + kBlockK);
    tile.template multiply<kPitchA, kPitchB>(a_tiles[buffer], b_tiles[buffer], sums);
    buffer ^= 1;
    if (!more) break;
    // The other pair of tiles was last read one step ago, before that step's barrier.
    store(a_tiles[buffer], b_tiles[buffer]);
    __syncthreads();  // separates these stores, and the loads above, from the next step's
  }

  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
  });
}

template <class Tile>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const auto kernel =
      rows_are_aligned(product) ? gemm_warp_tiles<Tile, true> : gemm_warp_tiles<Tile, false>;
  const TileMapProblem tiles = tiles_of(gemm, {Tile::kBlockM, Tile::kBlockN}, kBlockK, gemm.map);
  launch(kernel, {tile_map::launch_grid(tiles), dim3(Tile::kThreads)}, product, tiles);
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
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

Implementation<GemmProblem> warp_tiles() {
  return {
      .supports = supports_whole_tiles, .run = run, .tile = tile_for, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
