/// @file implicit_gemm.cu
/// @brief sparse_conv: implicit GEMM; a block executes the union of its rows' taps on one output
/// tile.
///
/// - Before: output_stationary.cu
/// - After: implicit_gemm_sorted.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** At one tap, a tile of rows is a dense GEMM: rows of features, gathered through
/// nbr, times the tap's weights, both staged in shared memory. Missing rows are zeros. Accumulators
/// stay in registers. The OR of the rows' masks lists the taps to execute.
///
///     mask     row 0   . X . X       gathered at tap 1      weights
///              row 1   . X . .       | features[nbr[1][0]]  |   | W_1 |
///              row 2   . . . X       | features[nbr[1][1]]  | x |     |  added to the accumulators
///              row 3   . X . .       | 0                    |   |     |
///     OR               . X . X       | features[nbr[1][3]]  |
///                     tap 0 and tap 2 are skipped
///
/// **Expect.** *Executed over useful* is the number of rows times taps that the tiles execute,
/// divided by pairs. For sweep-64-subm3, benchmarks/tile_waste.cpp counts 2.7 for tiles of 32 rows
/// in coordinate order, and 3.9 in random order. Predicted on an H200: 20 TFLOP/s, a third of its
/// peak, and 0.95 ms.
/// @expect loads_per_output.weights 27 * 32 / 32 = 27, tiles of 32 rows; here each has all taps
/// @expect loads_per_output.features 3838 / 512 = 7.496, those that exist, for 32 channels
/// @expect barriers_per_block 27 * 2 * 2 + 3 = 111, two a step of 16 channels; and three
/// **Costs.** Multiply-adds with zeros. Needs masks besides nbr. Float32 only.
/// **Try.** Count the executed rows that are -1 with atomicAdd. Does tile_waste.cpp agree?
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"
#include "cuda_optimized/sparse_conv/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kRows = 32;    ///< Rows of a tile: as many as a warp has lanes.
constexpr int kBlockK = 16;  ///< Depth of a step.
using Wide = gemm::ThreadTile<kRows, 64, kBlockK, 4, 4, 4>;
using Narrow = gemm::ThreadTile<kRows, 32, kBlockK, 4, 4, 4>;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< tiles.

/// Block (Tile::kThreads), any one-dimensional grid.
template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads) sparse_conv_implicit_gemm(ImplicitGemm conv) {
  constexpr int kPitchA = kBlockK + 4, kPitchB = Tile::kBlockN;
  __shared__ __align__(16) float a_tile[kRows * kPitchA];
  __shared__ __align__(16) float b_tile[kBlockK * kPitchB];
  __shared__ std::int32_t rows[kRows], inputs[kRows];  // row numbers and their input rows, or -1
  __shared__ unsigned any;                             // bits of the taps that any row has

  const int thread = static_cast<int>(threadIdx.x), words = mask_words(conv.KV);
  const std::int64_t across = ceil_div(conv.Cout, Tile::kBlockN);
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.M, kRows) * across;
  const Tile tile(threadIdx.x);
  for (std::int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const std::int64_t place = i;
    const int co0 = static_cast<int>(place % across) * Tile::kBlockN;
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    std::int32_t row = -1;  // that this thread looks up
    if (thread < kRows) {
      const std::int64_t at = place / across * kRows + thread;
      if (at < conv.M) row = static_cast<int>(at);
      rows[thread] = row;
    }
    for (int word = 0; word < words; ++word) {
      if (thread < kRows) {
        unsigned bits =
            row >= 0 ? static_cast<unsigned>(conv.mask[std::int64_t{row} * words + word]) : 0;
        for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
        if (thread == 0) any = bits;
      }
      __syncthreads();  // `any` and `rows` are complete
      for (unsigned left = any; left != 0; left &= left - 1) {
        const std::int64_t k = 32 * word + __ffs(static_cast<int>(left)) - 1;
        if (thread < kRows) inputs[thread] = row >= 0 ? conv.nbr[k * conv.M + row] : -1;
        for (int ci0 = 0; ci0 < conv.Cin; ci0 += kBlockK) {
          __syncthreads();  // `inputs` is complete, and all threads have multiplied the previous
                            // tiles
          for (int e = thread; e < kRows * kBlockK; e += Tile::kThreads) {
            const int m = e / kBlockK, ci = ci0 + e % kBlockK;
            const bool exists = inputs[m] >= 0 && ci < conv.Cin;
            a_tile[m * kPitchA + e % kBlockK] =
                exists ? conv.features[std::int64_t{inputs[m]} * conv.Cin + ci] : 0.0f;
          }
          for (int e = thread; e < kBlockK * Tile::kBlockN; e += Tile::kThreads) {
            const int ci = ci0 + e / Tile::kBlockN, co = co0 + e % Tile::kBlockN;
            const bool exists = ci < conv.Cin && co < conv.Cout;
            b_tile[e / Tile::kBlockN * kPitchB + e % Tile::kBlockN] =
                exists ? conv.weights[(k * conv.Cin + ci) * conv.Cout + co] : 0.0f;
          }
          __syncthreads();  // both tiles are complete before any thread reads them
          // for k, i, j:  sums[i][j] += a_tile[row i of this thread][k] * b_tile[k][column
          // j]
          tile.template multiply_along_k<kPitchA, kPitchB>(a_tile, b_tile, sums);
        }
      }
      __syncthreads();  // all threads have read `any` before it is overwritten for the next word
    }
    tile.for_each_four_along_k(sums, [&](int m, int n, float4 four) {
      if (rows[m] >= 0 && co0 + n < conv.Cout) store_sums<false>(conv, rows[m], co0 + n, four);
    });
    __syncthreads();  // all threads have read `rows` before the next tile overwrites it
  }
}

/// Calls body.operator()<tile>() with the tile for this number of output channels.
template <class Body>
void with_tile(int Cout, const Body& body) {
  if (Cout <= Narrow::kBlockN) {
    body.template operator()<Narrow>();
  } else {
    body.template operator()<Wide>();
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M], mask [M][words], y [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  const ImplicitGemm product = implicit_gemm_of(conv, arrays);
  with_tile(conv.Cout, [&]<class Tile>() {
    const std::int64_t tiles =
        ceil_div<std::int64_t>(conv.M, kRows) * ceil_div(conv.Cout, Tile::kBlockN);
    launch(sparse_conv_implicit_gemm<Tile>, {blocks_for(tiles, 1, kMaxBlocks), Tile::kThreads},
           product);
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  std::string words;
  with_tile(conv.Cout, [&]<class Tile>() { words = text(kRows, " x ", Tile::kBlockN); });
  return words;
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
