/// @file ldmatrix.cu
/// @brief `ldmatrix` with XOR swizzle: fragments are loaded from shared memory without bank
/// conflicts.
///
/// - Before: mma.cu
/// - After: tma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** `ldmatrix` loads four matrices of 8 x 8 elements and distributes them over the
/// lanes as `mma.sync` expects it: a fragment of a, or with `.trans` two of a row-major b. It reads
/// eight rows of 16 bytes at a time, which must lie in different banks. Tiles therefore have rows
/// of 128 bytes, b's in panels of 64 columns, and the 16-byte pieces of a row are permuted by
/// exclusive or with the row's number (XOR swizzle):
///
///     row 0   0 1 2 3 4 5 6 7      Piece 2 of rows 0 to 7 is at places
///     row 1   1 0 3 2 5 4 7 6      2, 3, 0, 1, 6, 7, 4, 5: all 32 banks.
///
/// Now the tensor cores can be kept busy. The fragments of the next k16 are loaded during the
/// products of this one, also across stages. A warp computes 64 x 64 of c and a block 256 x 128, so
/// that each element is used often; super-rows of tiles keep what is loaded in the L2 cache.
///
/// **Expect.** For 32 mma, 8 loads where mma.cu has 64, without bank conflicts. `mma.sync` reaches
/// 62 % of what wgmma does on Hopper. Predicted on an H200: 450 TFLOP/s at 4096 (305 us).
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect loads_per_output.shared (128 / 16 + 1) * (4 + 2) * 32 / (64 * 32) = 0.84
/// @expect excess.shared.load 0, where mma.cu has 3 wavefronts a request
/// @expect barriers_per_block 128 / 64 + 1 = 3, one a stage
/// **Costs.** 144 KB of shared memory; GPUs with less, and small products, take tiles of 128 x 64.
/// Tiles at an edge need tests in each copy, a kernel of their own. Not supported: as before.
/// **Try.** Store the tiles without the permutation. How many wavefronts does a load take?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kMmaK = 16;  ///< Of k in an instruction.

/// The sizes of a kernel: a block's tile of c and a warp's, stages, and blocks per SM.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages_, int kBlocks_>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kNumbersA = kM * kHalfStep, kNumbersB = kHalfStep * kN;  ///< of a stage
  static constexpr int kNumbers = kNumbersA + kNumbersB;                        ///< a, then b
  static constexpr std::size_t kSharedBytes = kStages * kNumbers * 2;
};
using Large = Shape<256, 128, 64, 64, 3, 1>;
using Small = Shape<128, 64, 64, 32, 3, 3>;  ///< Where large tiles would leave SMs without work.

/// The fragments of a warp for 16 steps of k.
template <class S>
struct Fragments {
  std::uint32_t a[S::WarpM / 16][4], b[S::WarpN / 8][2];

  /// Steps k ... k + 15 of a stage. This lane's first row of a is at stage[a_at], of b at
  /// stage[b_at]. The swizzle is an exclusive or, and so is the way to other pieces of a row; rows
  /// that are a multiple of 8 away are permuted alike.
  template <class T>
  __device__ void load(const T* stage, int a_at, int b_at, int k) {
#pragma unroll
    for (int i = 0; i < S::WarpM / 16; ++i) {
      ptx::ldmatrix_x4(a[i], stage + (a_at ^ k) + 16 * i * kHalfStep);
    }
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; j += 2) {
      std::uint32_t two[4];  // fragments, of 8 columns each
      ptx::ldmatrix_x4_trans(two, stage + (b_at ^ 8 * j) + k * kHalfColumns);
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
  }
};

/// What the copies of tiles must look at.
enum class Edges {
  none,     ///< Nothing: all tiles are whole, and rows of a and b are aligned to 16 bytes.
  checked,  ///< Tiles may reach beyond a and b.
  by_ones   ///< And rows begin anywhere: elements pass through registers, one by one.
};

/// A tile of c for each block. Grid: the map's. Block (S::kThreads).
template <class S, class T, Edges kEdges>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    gemm_ldmatrix(GemmProblem gemm, TileMapProblem map, const T* a, const T* b, RowsOfC<T> c) {
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  const std::int64_t m0 = std::int64_t{tile.m} * S::M, n0 = std::int64_t{tile.n} * S::N;
  T* const stages = dynamic_shared<T>();

  // A thread copies a piece of every kRows-th row of a's tile, and of every panel of b's.
  constexpr bool kAligned = kEdges != Edges::by_ones;
  constexpr int kRows = S::kThreads / 8;
  const int row = static_cast<int>(threadIdx.x / 8), piece = static_cast<int>(threadIdx.x % 8) * 8;
  const int to = swizzled_half(row, piece);
  std::int64_t a_at = (m0 + row) * gemm.K + piece;
  std::int64_t b_at = std::int64_t{row} * gemm.N + n0 + piece;
  const std::int64_t rows_left = gemm.M - m0 - row;
  const int columns_left = static_cast<int>(gemm.N - n0) - piece;
  int k_left = gemm.K;  // of the steps that are not copied yet
  const auto copy = [&](int stage) {
    if (k_left > 0) {
      T* const a_to = stages + stage * S::kNumbers + to;
      T* const b_to = a_to + S::kNumbersA;
#pragma unroll
      for (int i = 0; i < S::M; i += kRows) {
        const int left = kEdges == Edges::none ? 8 : i < rows_left ? k_left - piece : 0;
        copy_eight<kAligned>(a_to + i * kHalfStep, a, a_at + std::int64_t{i} * gemm.K, left);
      }
#pragma unroll
      for (int i = 0; i < S::N; i += kRows) {
        const int down = i % kHalfStep, across = i / kHalfStep * kHalfColumns;
        const int left = kEdges == Edges::none ? 8
                         : down < k_left - row ? columns_left - across
                                               : 0;
        copy_eight<kAligned>(b_to + i * kHalfColumns, b,
                             b_at + std::int64_t{down} * gemm.N + across, left);
      }
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
    a_at += kHalfStep;
    b_at += std::int64_t{kHalfStep} * gemm.N;
    k_left -= kHalfStep;
  };
  const auto wait_for_next = [] {
    ptx::cp_async_wait_group<S::kStages - 2>();
    // Makes the copies of all threads visible to all; and separates the loads of the previous stage
    // from the copies that will overwrite it.
    __syncthreads();
  };

  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int a_from = swizzled_half(warp_m + lane % 16, lane / 16 * 8);
  const int b_from = S::kNumbersA + warp_n / kHalfColumns * (kHalfStep * kHalfColumns) +
                     swizzled_half(lane % 16, warp_n % kHalfColumns + lane / 16 * 8);
  Fragments<S> fragments[2];  // of this k16, and of the next one
  float sums[S::WarpM / 16][S::WarpN / 8][4] = {};

  for (int stage = 0; stage < S::kStages - 1; ++stage) copy(stage);
  wait_for_next();
  fragments[0].load(stages, a_from, b_from, 0);
  int read = 0, write = S::kStages - 1;  // stages
#pragma unroll 1
  for (int step = 0; step < map.k_steps; ++step) {
#pragma unroll
    for (int k = 0; k < kHalfStep; k += kMmaK) {
      const int now = k / kMmaK % 2;
      if (k + kMmaK == kHalfStep) {
        wait_for_next();
        read = read + 1 == S::kStages ? 0 : read + 1;
      }
      // After the last step these are of a stage without data: no product contains them.
      fragments[1 - now].load(stages + read * S::kNumbers, a_from, b_from, (k + kMmaK) % kHalfStep);
      if (k == 0) copy(write);  // into the stage of the previous step
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          mma_m16n8k16<T>(sums[i][j], fragments[now].a[i], fragments[now].b[j]);
        }
      }
    }
    write = write + 1 == S::kStages ? 0 : write + 1;
  }

#pragma unroll
  for (int i = 0; i < S::WarpM / 16; ++i) {
    const std::int64_t m = m0 + warp_m + 16 * i + lane / 4;
    T* const rows[2] = {c.row(m), c.row(m + 8)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto pair = [&](int j) {
        return float2{sums[i][j][2 * half], sums[i][j][2 * half + 1]};
      };
#pragma unroll
      for (int j = 0; j < S::WarpN / 8; j += 4) {
        c.store(rows[half], n0 + warp_n + 8 * j, pair(j), pair(j + 1), pair(j + 2), pair(j + 3));
      }
    }
  }
}

OutputTile tile(const GemmProblem& gemm) {
  return with_less_work<Large, Small>(gemm, []<class S>(S) { return OutputTile{S::M, S::N}; });
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_mma()) return why;
  return tile_map::why_no_whole_tiles(tiles_in_groups(gemm, tile(gemm)));
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_less_work<Large, Small>(gemm, [&]<class S>(S) {
      const T *a = arrays.a, *b = arrays.b;
      const TileMapProblem tiles = tiles_in_groups(gemm, {S::M, S::N});
      const bool aligned = rows_in_eights(gemm) && begin_at_16_bytes(a, b);
      const bool whole = gemm.M % S::M == 0 && gemm.N % S::N == 0 && gemm.K % kHalfStep == 0;
      launch(!aligned ? gemm_ldmatrix<S, T, Edges::by_ones>
             : whole  ? gemm_ldmatrix<S, T, Edges::none>
                      : gemm_ldmatrix<S, T, Edges::checked>,
             {tile_map::launch_grid(tiles), S::kThreads, S::kSharedBytes}, gemm, tiles, a, b,
             rows_of_c<T>(gemm, arrays.c));
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  const OutputTile of = tile(gemm);
  return text(dtype_name(gemm.dtype, gemm.precision), ", ", of.rows, " x ", of.columns,
              rows_in_eights(gemm) ? ", rows in eights" : ", rows of any length");
}

}  // namespace

extern const Implementation<GemmArrays> ldmatrix = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
