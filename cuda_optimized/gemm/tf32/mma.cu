/// @file mma.cu
/// @brief TF32 tensor cores (`mma.sync`): operands are rounded to TF32 and accumulated in FP32.
///
/// - Before: cp_async.cu
/// - After: mma_3xtf32.cu
/// - The inner part: shared/mma_tile.cuh (convolutions are made of it, too)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** `mma.sync` is a GEMM of a whole warp: c [16][8] += a [16][8] * b [8][8], 1024
/// multiply-adds in one instruction, where an FMA of a warp does 32. The lanes hold the matrices in
/// registers, as fragments:
///
///     a [16][8]  lane l holds rows l/4 and l/4 + 8,     b [8][8]  lane l holds column l/4,
///                columns l%4 and l%4 + 4                          rows l%4 and l%4 + 4
///     c [16][8]  lane l holds rows l/4 and l/4 + 8, columns 2 (l%4) and 2 (l%4) + 1
///
/// A warp computes 64 x 64 elements of c from 4 fragments of a and 8 of b: 32 mma for 20 loads,
/// which shared memory can sustain. A block stages 32 steps of k at a time with cp.async, in three
/// stages. TF32 has 10 fraction bits. The hardware truncates the other 13 bits of a float, and sums
/// of positive products would be about 6e-4 too small, so `cvt.rna` rounds each operand after its
/// load.
///
/// **Expect.** For 32 mma, 20 loads and 32 cvt: about 40 % of the issue slots are mma. A block of
/// 128 x 128 reads 1 KB from L2 per k, for 16384 multiply-adds: 250 TFLOP/s would need 7.8 TB/s,
/// more than the L2 cache delivers. Predicted on an H200: 200 TFLOP/s at 4096.
/// @expect on --m 128 --n 128 --k 64 --dtype tf32
/// @expect loads_per_output.shared 8 * (2 + 2 * 4) / 32 = 2.5, 2 ldmatrix, 4 fragments of b
/// @expect loads_per_output.a 64 / 64 / 4 = 0.25, tiles of 64 x 64
/// @expect bytes_per_lane.a.async 16
/// @expect barriers_per_block 64 / 32 + 1 = 3, one a stage
/// **Costs.** 101 KB of shared memory and 240 registers per thread: two blocks of 128 threads per
/// SM. Rows that are not aligned to 16 bytes are copied 4 bytes at a time. Not supported: fp32
/// problems, GPUs before compute capability 8.0, tile maps with parts of tiles.
/// **Try.** Do not round b: MmaSums<..., true, false>. Which test finds it, and why not one on
/// integers?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

/// The sizes of a kernel: a block's tile of c and a warp's.
template <int kM, int kN, int kWarpM, int kWarpN>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  /// Three: the copies of two are in flight while one is multiplied.
  using Stages = MmaStages<TileOrder::along_k, kM, TileOrder::across_k, kN, 3>;
  static constexpr std::size_t kSharedBytes = Stages::kStages * Stages::kFloats * sizeof(float);
};
using Large = Shape<128, 128, 64, 64>;
using Small = Shape<64, 64, 32, 32>;  ///< Where the large tiles would be too few.

/// Asks for the tile of a at row m0 and the tile of b at column n0, both from step k0 on; zeros
/// past the edges. Copies kBytes at a time: a, b and their rows begin at multiples of it.
template <class S, int kBytes>
__device__ void copy_tiles(const GemmProblem& gemm, const float* a, const float* b, std::int64_t m0,
                           std::int64_t n0, int k0, float* a_tile, float* b_tile) {
  constexpr int kWidth = kBytes / 4;
  // All copies of 4 bytes at once would need more registers than there are.
  [[maybe_unused]] constexpr int kUnroll = kBytes == 16 ? 8 : 4;
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kPiecesA = kMmaStep / kWidth;  // of a row
  const int a_k = thread % kPiecesA * kWidth;
  constexpr int kRowsA = S::kThreads / kPiecesA;  // at a time
#pragma unroll kUnroll
  for (int j = 0; j < S::M / kRowsA; ++j) {
    const int i = thread / kPiecesA + j * kRowsA;
    const bool inside = m0 + i < gemm.M && k0 + a_k < gemm.K;
    ptx::cp_async<kBytes>(a_tile + S::Stages::A::at(i, a_k),
                          a + (inside ? (m0 + i) * gemm.K + k0 + a_k : 0), inside ? kBytes : 0);
  }
  constexpr int kPiecesB = S::N / kWidth, kRowsB = S::kThreads / kPiecesB;
  const int b_n = thread % kPiecesB * kWidth;
#pragma unroll kUnroll
  for (int j = 0; j < kMmaStep / kRowsB; ++j) {
    const int k = thread / kPiecesB + j * kRowsB;
    const bool inside = k0 + k < gemm.K && n0 + b_n < gemm.N;
    ptx::cp_async<kBytes>(b_tile + S::Stages::B::at(b_n, k),
                          b + (inside ? std::int64_t{k0 + k} * gemm.N + n0 + b_n : 0),
                          inside ? kBytes : 0);
  }
}

/// a [M][K], b [K][N], c [M][N]. Grid: the map's, of tiles S::M x S::N. Block (S::kThreads).
template <class S, int kBytes>
__global__ void __launch_bounds__(S::kThreads, 2)
    gemm_tf32_mma(GemmProblem gemm, TileMapProblem map, const float* a, const float* b, float* c) {
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  const std::int64_t m0 = std::int64_t{tile.m} * S::M, n0 = std::int64_t{tile.n} * S::N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;

  MmaSums<S::WarpM / 16, S::WarpN / 8> sums;
  S::Stages::multiply(
      map.k_steps, dynamic_shared<float>(), warp_m, warp_n,
      [&](int step, float* a_tile, float* b_tile) {
        copy_tiles<S, kBytes>(gemm, a, b, m0, n0, step * kMmaStep, a_tile, b_tile);
      },
      &sums);

  const bool in_pairs = gemm.N % 2 == 0 && reinterpret_cast<std::uintptr_t>(c) % 8 == 0;
  sums.for_each_pair([&](int row, int column, float first, float second) {
    const std::int64_t m = m0 + warp_m + row, n = n0 + warp_n + column;
    if (m >= gemm.M || n >= gemm.N) return;
    float* const to = c + m * gemm.N;
    if (in_pairs) {
      reinterpret_cast<float2*>(to)[n / 2] = {first, second};
    } else {
      to[n] = first;
      if (n + 1 < gemm.N) to[n + 1] = second;
    }
  });
}

/// Whether the large tiles are enough for all SMs.
bool takes_large(const GemmProblem& gemm) {
  return std::int64_t{ceil_div(gemm.M, Large::M)} * ceil_div(gemm.N, Large::N) >= multiprocessors();
}

TileMapProblem tiles_of(const GemmProblem& gemm, OutputTile tile) {
  return {.map = gemm.map,
          .tiles_m = ceil_div(gemm.M, tile.rows),
          .tiles_n = ceil_div(gemm.N, tile.columns),
          .k_steps = ceil_div(gemm.K, kMmaStep)};
}

OutputTile tile(const GemmProblem& gemm) {
  return takes_large(gemm) ? OutputTile{Large::M, Large::N} : OutputTile{Small::M, Small::N};
}

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f32) return "float32 only";
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (gemm.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = why_not("sm_80")) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm, tile(gemm)));
}

/// Whether all rows of a and b are aligned to 16 bytes, if the matrices do.
bool rows_in_fours(const GemmProblem& gemm) { return gemm.K % 4 == 0 && gemm.N % 4 == 0; }

template <class S>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const float* a = arrays.a;
  const float* b = arrays.b;
  const TileMapProblem tiles = tiles_of(gemm, {S::M, S::N});
  const bool in_fours =
      rows_in_fours(gemm) &&
      (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
  launch(in_fours ? gemm_tf32_mma<S, 16> : gemm_tf32_mma<S, 4>,
         {tile_map::launch_grid(tiles), S::kThreads, S::kSharedBytes}, gemm, tiles, a, b, arrays.c);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  takes_large(gemm) ? run_with<Large>(gemm, arrays) : run_with<Small>(gemm, arrays);
}

std::string choice_in_words(const GemmProblem& gemm) {
  return rows_in_fours(gemm) ? "rows in fours" : "rows of any length";
}

}  // namespace

extern const Implementation<GemmArrays> tf32_mma = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
