/// @file vectorized.cu
/// @brief gemm: four numbers a load and a store, from global memory and from shared memory.
///
/// - Before: register_tile.cu
/// - After: warp_tiles.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A float4 is one instruction for four numbers. For b and c that is all there is to
/// it. But a's rows run along k, and the inner loop wants columns of a: a thread loads four steps
/// of one row, and stores them into four rows of a transposed tile.
///
///        a, in memory                        a_tile [k][m], in shared memory
///              k ->
///        m   | x y z w | . . . .              m ->   x . . .       a warp stores 16 columns of two
///        |   | . . . . |                   k         y             rows, four apart; with 4 floats
///            one float4 of a thread        |         z             between the rows, four rows are
///                                                    w             16 banks: all 32 differ
///
/// In the inner loop a thread's eight numbers of a are two float4, as are those of b. They cannot
/// be eight neighbours: see thread_tile.cuh.
///
/// **Expect.** A quarter of the load instructions: 4 for 64 multiply-adds, 1/16 each. The bytes
/// stay: 4 loads of 32 lanes x 16 bytes bring 2 KB to registers, at 128 bytes a cycle in 16 cycles,
/// as long as an SM takes for those 64 multiply-adds. So the limit is register_tile's, but the
/// loads take only a quarter of the issue slots. Predicted on an H200: 33 TFLOP/s at 4096 (4.2 ms).
/// **Costs.** Vectors need arrays at multiples of 16 bytes, and K and N in multiples of 4;
/// otherwise a second kernel loads one by one. 128 registers. Declines what register_tile declines.
/// **Try.** Take the 4 floats between the rows of a's tile away, and count the bank conflicts.
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/four.cuh"
#include "cuda_optimized/gemm/gemm_plan.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kBlockK = 8;  ///< Depth of a step.
/// The 32 threads of a warp are 2 x 16 in Large and Wide, as were those of register_tile, and 4 x 8
/// in the others.
using Large = ThreadTile<128, 128, kBlockK, 8, 8, 2>;
using Wide = ThreadTile<64, 128, kBlockK, 8, 8, 2>;
using Medium = ThreadTile<64, 64, kBlockK, 8, 4, 4>;
using Small = ThreadTile<32, 32, kBlockK, 4, 4, 4>;

/// A tile of c for each block. Grid: the map's. Block (Tile::kThreads).
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads)
    gemm_vectorized(Product product, TileMapProblem map) {
  constexpr int kLoadsA = Tile::kBlockM * kBlockK / 4 / Tile::kThreads;  // float4 of each thread
  constexpr int kLoadsB = Tile::kBlockN * kBlockK / 4 / Tile::kThreads;
  constexpr int kFoursA = kBlockK / 4, kFoursB = Tile::kBlockN / 4;  // in a row of a, of b
  constexpr int kPitchA = Tile::kBlockM + 4, kPitchB = Tile::kBlockN;
  __shared__ __align__(16) float a_tile[kBlockK * kPitchA];
  __shared__ __align__(16) float b_tile[kBlockK * kPitchB];

  tile_map::Tile place;
  if (!tile_map::tile_of_block(map, &place)) return;  // the whole block, at once

  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t m0 = std::int64_t{place.m} * Tile::kBlockM;
  const std::int64_t n0 = std::int64_t{place.n} * Tile::kBlockN;
  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};

  for (std::int64_t k0 = 0; k0 < product.K; k0 += kBlockK) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = (thread + i * Tile::kThreads) / kFoursA, k = thread % kFoursA * 4;
      const float4 four = load_four<kAligned>(product.a, product.M, product.K, m0 + m, k0 + k);
      float* to = a_tile + k * kPitchA + m;
      to[0] = four.x;
      to[kPitchA] = four.y;
      to[2 * kPitchA] = four.z;
      to[3 * kPitchA] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const int k = (thread + i * Tile::kThreads) / kFoursB, n = thread % kFoursB * 4;
      *reinterpret_cast<float4*>(b_tile + k * kPitchB + n) =
          load_four<kAligned>(product.b, product.K, product.N, k0 + k, n0 + n);
    }
    __syncthreads();  // separates these stores from the loads below
    tile.template multiply<kPitchA, kPitchB>(a_tile, b_tile, sums);
    __syncthreads();  // separates these loads from the next step's stores
  }

  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
  });
}

template <class Tile>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const auto kernel =
      rows_are_aligned(product) ? gemm_vectorized<Tile, true> : gemm_vectorized<Tile, false>;
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

Implementation<GemmProblem> vectorized() {
  return {
      .supports = supports_whole_tiles, .run = run, .tile = tile_for, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
