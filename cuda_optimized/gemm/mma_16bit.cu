/// @file mma_16bit.cu
/// @brief gemm on the tensor cores in 16 bits: float16 or bfloat16, sums in float.
///
/// - Before: tf32/mma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A register holds two numbers of 16 bits, so that `mma.sync` takes 16 steps of k
/// where it took 8 of TF32, with as many registers: 2048 multiply-adds an instruction. Nothing is
/// rounded on the way, for the factors have the type of the fragments already. The two numbers of a
/// register follow one another along k. In a row-major a they lie so; in a row-major b they lie a
/// row apart, and no load of 32 bits finds both. `ldmatrix.trans` transposes on its way:
///
///     a [m][k]   ldmatrix          lane l gets (l/4, 2 (l%4)) and the next k
///     b [k][n]   ldmatrix.trans    lane l gets (2 (l%4), l/4) and the next k, from two rows
///
/// Each loads four matrices of 8 x 8. A row of one is 16 bytes; eight rows, which it reads at a
/// time, must lie in different banks. So the 16-byte pieces of a row change places, by exclusive or
/// with the row's number, in both tiles.
///
/// **Expect.** For 32 mma, 8 loads where TF32 takes 20 and 32 conversions. A stage of 64 steps of k
/// has the bytes of 32 in TF32, for twice the products: a block of 128 x 128 reads 512 bytes of L2
/// for each k. `mma.sync` reaches about 65 % of what wgmma does on Hopper. Predicted on an H200:
/// 400 TFLOP/s at 4096, 340 us.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect loads_per_output.shared 128 / 16 * (2 + 2) / 32 = 1, ldmatrix alone
/// @expect bytes_per_lane.a.async 16
/// @expect bytes_per_lane.c.store 4, two numbers
/// @expect barriers_per_block 128 / 64 = 2, one a stage
/// **Costs.** 96 KB of shared memory. Rows that do not begin at multiples of 16 bytes are copied
/// number by number, through registers. Declined: other types, GPUs before compute capability 8.0,
/// the maps that hand out less than whole tiles.
/// **Try.** Load b without `.trans`, from a tile that is transposed while it is stored. How many
/// stores of 2 bytes does a thread make for one of 16?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/accumulate.cuh"
#include "cuda_optimized/gemm/shared/half_types.cuh"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kStep = 64;   ///< Of k in a stage.
constexpr int kMmaK = 16;   ///< Of k in an instruction.
constexpr int kStages = 3;  ///< The copies of two are on their way while one is multiplied.
constexpr int kPiece = 8;   ///< Numbers in 16 bytes.

/// The sizes of a kernel: a block's tile of c and a warp's.
template <int kM, int kN, int kWarpM, int kWarpN>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kNumbersA = kM * kStep, kNumbersB = kStep * kN;  ///< of a stage's tiles
  static constexpr std::size_t kSharedBytes = kStages * (kNumbersA + kNumbersB) * 2;
};
using Large = Shape<128, 128, 64, 64>;
using Small = Shape<64, 64, 32, 32>;  ///< Where the large tiles would be too few.

/// Where a number of a tile with rows of kLength lies.
template <int kLength>
HOST_DEVICE int place(int row, int column) {
  return row * kLength + ((column / kPiece ^ row % kPiece) * kPiece | column % kPiece);
}

/// Copies rows [kRows][kColumns] from row0 and column0 of matrix [rows][columns] on; zeros past its
/// edges. kAligned: rows begin at multiples of 16 bytes, and copies are asynchronous.
template <int kRows, int kColumns, int kThreads, bool kAligned, class T>
__device__ void copy_tile(const T* matrix, std::int64_t rows, std::int64_t columns,
                          std::int64_t row0, std::int64_t column0, T* tile) {
  constexpr int kPieces = kColumns / kPiece, kAtOnce = kThreads / kPieces;
  const int thread = static_cast<int>(threadIdx.x), column = thread % kPieces * kPiece;
#pragma unroll
  for (int i = 0; i < kRows / kAtOnce; ++i) {
    const int row = thread / kPieces + i * kAtOnce;
    T* const to = tile + place<kColumns>(row, column);
    const std::int64_t left = row0 + row < rows ? columns - column0 - column : 0;
    const T* const from = matrix + (left > 0 ? (row0 + row) * columns + column0 + column : 0);
    if constexpr (kAligned) {
      ptx::cp_async<16>(to, from, left > 0 ? 16 : 0);
    } else {
#pragma unroll 1
      for (int j = 0; j < kPiece; ++j) to[j] = j < left ? from[j] : T{};
    }
  }
}

/// The fragments of 16 steps of k, from step k on: rows m ... of a_tile, columns n ... of b_tile.
template <class S, class T>
struct Factors {
  std::uint32_t a[S::WarpM / 16][4], b[S::WarpN / 8][2];

  __device__ void load(const T* a_tile, const T* b_tile, int m, int n, int k) {
    const int lane = lane_of_warp();
#pragma unroll
    for (int i = 0; i < S::WarpM / 16; ++i) {
      ptx::ldmatrix_x4(a[i], a_tile + place<kStep>(m + 16 * i + lane % 16, k + lane / 16 * 8));
    }
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; j += 2) {
      std::uint32_t two[4];  // fragments, of 8 columns each
      ptx::ldmatrix_x4_trans(two, b_tile + place<S::N>(k + lane % 16, n + 8 * j + lane / 16 * 8));
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
  }
};

/// a [M][K], b [K][N], c [M][N]. Grid: the map's, of tiles S::M x S::N. Block (S::kThreads).
template <class S, class T, bool kAligned>
__global__ void __launch_bounds__(S::kThreads, 2)
    gemm_mma_16bit(GemmProblem gemm, TileMapProblem map, const T* a, const T* b, T* c) {
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // the whole block, at once
  const std::int64_t m0 = std::int64_t{tile.m} * S::M, n0 = std::int64_t{tile.n} * S::N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;

  T* const tiles = dynamic_shared<T>();
  const auto a_tile = [=](int step) {
    return tiles + step % kStages * (S::kNumbersA + S::kNumbersB);
  };
  const auto b_tile = [=](int step) { return a_tile(step) + S::kNumbersA; };
  const auto ask_for = [&](int step) {
    if (step < map.k_steps) {
      const std::int64_t k0 = std::int64_t{step} * kStep;
      copy_tile<S::M, kStep, S::kThreads, kAligned>(a, gemm.M, gemm.K, m0, k0, a_tile(step));
      copy_tile<kStep, S::N, S::kThreads, kAligned>(b, gemm.K, gemm.N, k0, n0, b_tile(step));
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
  };

  MmaSums<S::WarpM / 16, S::WarpN / 8> sums;
  Factors<S, T> factors[2];
  for (int step = 0; step < kStages - 1; ++step) ask_for(step);
#pragma unroll 1
  for (int step = 0; step < map.k_steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    // Makes the copies of all threads visible to all; and separates the loads of the step before
    // from the copies that will overwrite its tiles.
    __syncthreads();
    ask_for(step + kStages - 1);
    factors[0].load(a_tile(step), b_tile(step), warp_m, warp_n, 0);
#pragma unroll
    for (int k = 0; k < kStep; k += kMmaK) {
      const int now = k / kMmaK % 2;
      // On their way while the others are multiplied.
      if (k + kMmaK < kStep)
        factors[1 - now].load(a_tile(step), b_tile(step), warp_m, warp_n, k + kMmaK);
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          mma<T>(sums.of[i][j], factors[now].a[i], factors[now].b[j]);
        }
      }
    }
  }

  const bool in_pairs = gemm.N % 2 == 0 && reinterpret_cast<std::uintptr_t>(c) % 4 == 0;
  sums.for_each_pair([&](int row, int column, float first, float second) {
    const std::int64_t m = m0 + warp_m + row, n = n0 + warp_n + column;
    if (m >= gemm.M || n >= gemm.N) return;
    T* const to = c + m * gemm.N + n;
    if (in_pairs) {
      store_two(to, first, second);
    } else {
      to[0] = rounded_to<T>(first);
      if (n + 1 < gemm.N) to[1] = rounded_to<T>(second);
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
          .k_steps = ceil_div(gemm.K, kStep)};
}

OutputTile tile(const GemmProblem& gemm) {
  return takes_large(gemm) ? OutputTile{Large::M, Large::N} : OutputTile{Small::M, Small::N};
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_not("sm_80")) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm, tile(gemm)));
}

template <class S, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T* a = arrays.a;
  const T* b = arrays.b;
  T* c = arrays.c;
  const TileMapProblem tiles = tiles_of(gemm, {S::M, S::N});
  const bool in_eights = rows_in_eights(gemm) && begin_at_16_bytes(a, b);
  launch(in_eights ? gemm_mma_16bit<S, T, true> : gemm_mma_16bit<S, T, false>,
         {tile_map::launch_grid(tiles), S::kThreads, S::kSharedBytes}, gemm, tiles, a, b, c);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    takes_large(gemm) ? run_with<Large, T>(gemm, arrays) : run_with<Small, T>(gemm, arrays);
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return text(dtype_name(gemm.dtype, gemm.precision),
              rows_in_eights(gemm) ? ", rows in eights" : ", rows of any length");
}

}  // namespace

extern const Implementation<GemmArrays> mma_16bit = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
