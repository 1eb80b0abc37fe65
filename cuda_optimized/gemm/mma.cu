/// @file mma.cu
/// @brief Half-precision tensor cores: `mma.sync` multiplies fragments into FP32 accumulators.
///
/// - Before: cp_async.cu
/// - After: ldmatrix.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** `mma.sync.m16n8k16` multiplies a [16][16] by b [16][8] and adds the product to
/// accumulators [16][8]: 2048 multiply-adds in one instruction of a warp. The lanes hold these
/// fragments in registers. Lane l, with group g = l / 4 and place p = l % 4, has
///
///     a   4 registers   rows g and g + 8     columns 2p, 2p + 1, and 2p + 8, 2p + 9
///     b   2 registers   rows 2p, 2p + 1, and 2p + 8, 2p + 9     column g
///     c   4 registers   rows g and g + 8     columns 2p, 2p + 1
///
/// A register of a or b holds two neighbours along k. In a row-major a they are one 32-bit word; in
/// a row-major b they lie in two rows, and are two 16-bit loads. The copies and the ring of stages
/// are those of cp_async.cu.
///
/// **Expect.** For each k16, a warp has 16 mma and 32 loads of 4 wavefronts each, because its lanes
/// read rows that begin in the same banks. The 8 warps of a block take 1024 cycles, in which the
/// tensor cores could compute five times as much. Predicted on an H200: 1160 us at 4096.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect loads_per_output.shared 8 * (4 * 4 + 4 * 4) * 32 / 2048 = 4
/// @expect excess_per_request.shared.load 3, each takes four wavefronts in place of one
/// @expect barriers_per_block 128 / 32 = 4, one a stage
/// **Costs.** 48 KB of shared memory. Rows that are not aligned to 16 bytes are copied element by
/// element. Not supported: other types, a bias or an activation, split-K maps.
/// **Try.** Make the rows of both tiles 8 elements longer. How many wavefronts are left?
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kTileM = 128, kTileN = 128;  ///< Of c, a block's.
constexpr int kWarpM = 64, kWarpN = 32;    ///< Of c, a warp's.
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
constexpr int kStages = 3;                        ///< Steps in shared memory, or in flight.
constexpr int kStep = 32;                         ///< Of k in a stage.
constexpr int kMmaM = 16, kMmaN = 8, kMmaK = 16;  ///< Of one instruction.

/// A stage in shared memory: both tiles lie as in their matrices.
template <class T>
struct Stage {
  T a[kTileM][kStep], b[kStep][kTileN];
};

/// A tile of c for each block. Grid: the map's. Block (kThreads).
/// @tparam kAligned rows of a and b are aligned to 16 bytes
template <class T, bool kAligned>
__global__ void __launch_bounds__(kThreads, 2)
    gemm_mma(GemmProblem gemm, TileMapProblem map, const T* a, const T* b, RowsOfC<T> c) {
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  auto* const stages = dynamic_shared<Stage<T>>();

  // A thread copies eight elements at a time: of the rows a_m, a_m + kRowsA ... of a's tile, and of
  // the rows b_k, b_k + kRowsB ... of b's.
  constexpr int kEightsA = kStep / 8, kRowsA = kThreads / kEightsA;
  constexpr int kEightsB = kTileN / 8, kRowsB = kThreads / kEightsB;
  const int a_m = static_cast<int>(threadIdx.x / kEightsA);
  const int a_k = static_cast<int>(threadIdx.x % kEightsA) * 8;
  const int b_k = static_cast<int>(threadIdx.x / kEightsB);
  const int b_n = static_cast<int>(threadIdx.x % kEightsB) * 8;
  const auto copy = [&](int step) {
    if (step < map.k_steps) {
      Stage<T>& stage = stages[step % kStages];
      const int k0 = step * kStep;
#pragma unroll
      for (int m = a_m; m < kTileM; m += kRowsA) {
        copy_eight<kAligned>(&stage.a[m][a_k], a, (m0 + m) * gemm.K + k0 + a_k,
                             m0 + m < gemm.M ? gemm.K - k0 - a_k : 0);
      }
#pragma unroll
      for (int k = b_k; k < kStep; k += kRowsB) {
        copy_eight<kAligned>(&stage.b[k][b_n], b, std::int64_t{k0 + k} * gemm.N + n0 + b_n,
                             k0 + k < gemm.K ? static_cast<int>(gemm.N - n0) - b_n : 0);
      }
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
  };

  // In the layout of the fragments, a lane is `group` rows (of b: columns) and `place` pairs of
  // elements away from the first one.
  const int group = static_cast<int>(threadIdx.x % 32 / 4),
            place = static_cast<int>(threadIdx.x % 4);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int warp_m = warp / (kTileN / kWarpN) * kWarpM, warp_n = warp % (kTileN / kWarpN) * kWarpN;
  float sums[kWarpM / kMmaM][kWarpN / kMmaN][4] = {};
  for (int step = 0; step < kStages - 1; ++step) copy(step);
#pragma unroll 1
  for (int step = 0; step < map.k_steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    // Makes the copies of all threads visible to all; and separates the loads of the previous step
    // from the copies that will overwrite its tiles.
    __syncthreads();
    copy(step + kStages - 1);
    const Stage<T>& stage = stages[step % kStages];
#pragma unroll
    for (int k = 0; k < kStep; k += kMmaK) {
      std::uint32_t a_fragments[kWarpM / kMmaM][4], b_fragments[kWarpN / kMmaN][2];
#pragma unroll
      for (int i = 0; i < kWarpM / kMmaM; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          // Two neighbours of a row are one word.
          const int row = warp_m + i * kMmaM + e % 2 * 8 + group;
          const int column = k + e / 2 * 8 + 2 * place;
          const T* const two = &stage.a[row][column];
          a_fragments[i][e] = *reinterpret_cast<const std::uint32_t*>(two);
        }
      }
#pragma unroll
      for (int j = 0; j < kWarpN / kMmaN; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // Two neighbours of a column lie in two rows, the first one in the low half.
          const int row = k + e * 8 + 2 * place, column = warp_n + j * kMmaN + group;
          const std::uint32_t low = stage.b[row][column].bits, high = stage.b[row + 1][column].bits;
          b_fragments[j][e] = high << 16 | low;
        }
      }
#pragma unroll
      for (int i = 0; i < kWarpM / kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpN / kMmaN; ++j) {
          mma_m16n8k16<T>(sums[i][j], a_fragments[i], b_fragments[j]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kWarpM / kMmaM; ++i) {
    const std::int64_t m = m0 + warp_m + i * kMmaM + group;
    T* const rows[2] = {c.row(m), c.row(m + 8)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto pair = [&](int j) {
        return float2{sums[i][j][2 * half], sums[i][j][2 * half + 1]};
      };
      c.store(rows[half], n0 + warp_n, pair(0), pair(1), pair(2), pair(3));
    }
  }
}

TileMapProblem tiles_of(const GemmProblem& gemm) {
  return {.map = gemm.map,
          .tiles_m = ceil_div(gemm.M, kTileM),
          .tiles_n = ceil_div(gemm.N, kTileN),
          .k_steps = ceil_div(gemm.K, kStep)};
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_mma()) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm));
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    const T *a = arrays.a, *b = arrays.b;
    const TileMapProblem tiles = tiles_of(gemm);
    const bool aligned = rows_in_eights(gemm) && begin_at_16_bytes(a, b);
    launch(aligned ? gemm_mma<T, true> : gemm_mma<T, false>,
           {tile_map::launch_grid(tiles), kThreads, kStages * sizeof(Stage<T>)}, gemm, tiles, a, b,
           rows_of_c<T>(gemm, arrays.c));
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return text(dtype_name(gemm.dtype, gemm.precision),
              rows_in_eights(gemm) ? ", rows in eights" : ", rows of any length");
}

}  // namespace

extern const Implementation<GemmArrays> mma = {
    .supports = supports,
    .run = run,
    .tile =
        [](const GemmProblem&) {
          return OutputTile{kTileM, kTileN};
        },
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
