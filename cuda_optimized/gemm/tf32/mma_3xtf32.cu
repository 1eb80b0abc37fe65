/// @file mma_3xtf32.cu
/// @brief 3xTF32 (`mma.sync`): each operand is split into two TF32 values, for the accuracy of
/// float.
///
/// - Before: mma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A float has 24 significand bits, TF32 has 11. So each operand is split into a TF32
/// value and its remainder, and the product into four terms, of which the last is negligible:
///
///     a = big_a + small_a     big_a = TF32(a), small_a = TF32(a - big_a): 22 bits and their signs
///     a b = big_a big_b + (big_a small_b + small_a big_b) + small_a small_b
///           1             2^-11                             2^-22: omitted
///
/// Three mma.sync replace one, the small terms first (CUTLASS calls it 3xTF32). The omitted term is
/// at most 2^-22 of a product, four times float's rounding error. In long sums that averages out;
/// sums of up to 32 products include the fourth term, too. There is a second error: tensor cores
/// truncate when they add, so that long sums drift towards zero by half a unit in the last place
/// per step. Therefore the accumulators of a stage start at zero, and are added to FP32 totals by
/// ordinary additions, which round to nearest: one addition for 12 mma of a fragment.
///
/// **Expect.** About a third of the speed of tf32/mma.cu, 55 to 60 TFLOP/s: now the tensor cores
/// are the limit, while the loads are the same. This is more than FMA reaches in practice, and less
/// than its peak.
/// @expect loads_per_output.shared 8 * (2 + 2 * 4) / 32 = 2.5, as in tf32/mma
/// @expect loads_per_output.a 64 / 64 / 4 = 0.25, likewise
/// @expect barriers_per_block 64 / 32 + 1 = 3, likewise: what is more is arithmetic
/// **Costs.** 128 registers for accumulators and totals of 64 x 32 elements per warp, so one block
/// of 256 threads per SM. Values below about 2^-115 lose their small part, and infinities become
/// NaN. Not supported: GPUs before compute capability 8.0, tile maps with parts of tiles.
/// **Try.** Remove end_step(), and find the shortest sum for which the suite notices.
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

/// The tile of c that a warp computes, as MmaSums, from operands that are split in two. With
/// kAllFour, the product of the small parts is added as well.
template <int kRows, int kColumns, bool kAllFour>
struct SplitSums {
  using Factors = MmaFactors<kRows, kColumns>;
  MmaSums<kRows, kColumns> total, of_stage;

  /// Replaces an operand, a float, by its big part; returns the small one.
  __device__ static std::uint32_t split(std::uint32_t& factor) {
    const float value = __uint_as_float(factor);
    factor = ptx::to_tf32(value);
    return ptx::to_tf32(value - __uint_as_float(factor));
  }

  /// Adds the products of these operands, which are used up.
  __device__ void multiply(Factors& now) {
    std::uint32_t small_b[kColumns][2];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) small_b[j][e] = split(now.b[j][e]);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      std::uint32_t small_a[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) small_a[e] = split(now.a[i][e]);
      if constexpr (kAllFour) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          ptx::mma_m16n8k8_tf32(of_stage.of[i][j], small_a, small_b[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        ptx::mma_m16n8k8_tf32(of_stage.of[i][j], small_a, now.b[j]);
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        ptx::mma_m16n8k8_tf32(of_stage.of[i][j], now.a[i], small_b[j]);
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        ptx::mma_m16n8k8_tf32(of_stage.of[i][j], now.a[i], now.b[j]);
      }
    }
  }

  /// Moves the accumulators of a stage to the totals.
  __device__ void end_step() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          total.of[i][j][e] += of_stage.of[i][j][e];
          of_stage.of[i][j][e] = 0.0f;
        }
      }
    }
  }
};

/// The sizes of a kernel: a block's tile of c and a warp's.
template <int kM, int kN, int kWarpM, int kWarpN>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  /// Three: the copies of two are in flight while one is multiplied.
  using Stages = MmaStages<TileOrder::along_k, kM, TileOrder::across_k, kN, 3>;
  static constexpr std::size_t kSharedBytes = Stages::kStages * Stages::kFloats * sizeof(float);
};
using Large = Shape<128, 128, 64, 32>;
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
template <class S, int kBytes, bool kAllFour>
__global__ void __launch_bounds__(S::kThreads, 1)
    gemm_tf32_mma_3xtf32(GemmProblem gemm, TileMapProblem map, const float* a, const float* b,
                         float* c) {
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  const std::int64_t m0 = std::int64_t{tile.m} * S::M, n0 = std::int64_t{tile.n} * S::N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;

  SplitSums<S::WarpM / 16, S::WarpN / 8, kAllFour> sums;
  S::Stages::multiply(
      map.k_steps, dynamic_shared<float>(), warp_m, warp_n,
      [&](int step, float* a_tile, float* b_tile) {
        copy_tiles<S, kBytes>(gemm, a, b, m0, n0, step * kMmaStep, a_tile, b_tile);
      },
      &sums);

  const bool in_pairs = gemm.N % 2 == 0 && reinterpret_cast<std::uintptr_t>(c) % 8 == 0;
  sums.total.for_each_pair([&](int row, int column, float first, float second) {
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

/// Whether the rounding of a few products counts: their small parts must be multiplied, too.
bool is_short(const GemmProblem& gemm) { return gemm.K <= kMmaStep; }

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
  if (const Declined why = why_not("sm_80")) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm, tile(gemm)));
}

/// Whether all rows of a and b are aligned to 16 bytes, if the matrices do.
bool rows_in_fours(const GemmProblem& gemm) { return gemm.K % 4 == 0 && gemm.N % 4 == 0; }

template <class S, bool kAllFour>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const float* a = arrays.a;
  const float* b = arrays.b;
  const TileMapProblem tiles = tiles_of(gemm, {S::M, S::N});
  const bool in_fours =
      rows_in_fours(gemm) &&
      (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
  launch(in_fours ? gemm_tf32_mma_3xtf32<S, 16, kAllFour> : gemm_tf32_mma_3xtf32<S, 4, kAllFour>,
         {tile_map::launch_grid(tiles), S::kThreads, S::kSharedBytes}, gemm, tiles, a, b, arrays.c);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const bool all_four = is_short(gemm);
  const auto run_shape = takes_large(gemm)
                             ? (all_four ? run_with<Large, true> : run_with<Large, false>)
                             : (all_four ? run_with<Small, true> : run_with<Small, false>);
  run_shape(gemm, arrays);
}

std::string choice_in_words(const GemmProblem& gemm) {
  return text(rows_in_fours(gemm) ? "rows in fours" : "rows of any length",
              is_short(gemm) ? ", all four products" : "");
}

}  // namespace

extern const Implementation<GemmArrays> tf32_mma_3xtf32 = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
