/// @file fp8_operands.cuh
/// @brief FP8 operands of `wgmma`: K-major copies of a and b in the workspace, their tensor maps,
/// and the stores of accumulators to c.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/cuda/launch.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// A matrix whose rows or columns are K long; strides are in numbers.
struct RepackBytes {
  int lines, K;                    ///< As many rows of the copy, each of K numbers.
  std::int64_t from_line, from_k;  ///< From a line to the next, and from a number of it.
  std::int64_t pitch;              ///< From a row of the copy to the next: a multiple of 16, >= K.

  /// Whether lines are columns, and those of so many words are adjacent at every k, to be read at
  /// once. (Of rows, from_k is 1.)
  bool columns_lie_in(int words, const Float8* source) const {
    return from_k % (4 * words) == 0 &&
           reinterpret_cast<std::uintptr_t>(source) % (4 * static_cast<unsigned>(words)) == 0;
  }
};

inline constexpr int kBytesLines = 32, kBytesWords = 32;  ///< 32 lines, of 128 numbers each
inline constexpr int kBytesRows = 8;                      ///< rows of threads

/// target [lines][pitch] = source, with zeros after each line. Block (kBytesLines, kBytesRows). A
/// tile goes through shared memory: it is read along the lines' neighbours, as a row-major b lies,
/// and written along k, 16 elements at a time. @tparam kWords 1 or 4, of four lines each, that a
/// thread reads at once @param squares columns_lie_in(kWords), always so with 4; else numbers are
/// read one by one
template <int kWords>
__global__ void __launch_bounds__(kBytesLines* kBytesRows)
    gemm_repack_bytes(RepackBytes repack, bool squares, const Float8* source, uint4* target) {
  constexpr int kLines = kBytesLines * kWords;  // of a tile
  // The words of a line in fours, which change places so that a column meets all banks.
  __shared__ uint4 tile[kLines][kBytesWords / 4];
  const auto place = [](int line, int word) { return word ^ line / (4 * kWords) % 8 * 4; };
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(repack.pitch, 4 * kBytesWords);
  const std::int64_t tiles = tiles_k * ceil_div(repack.lines, kLines);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t line0 = index / tiles_k * kLines;
    const std::int64_t k0 = index % tiles_k * (4 * kBytesWords);
    if (squares) {
      // Squares of 4 x 4 elements: four words across the lines become four along k. A warp reads
      // all lines at 16 k, and its stores meet all banks.
      const int line = tx % 8 * 4 * kWords, word = ty * 4 + tx / 8;
      const std::int64_t k = k0 + 4 * word;
      const std::int64_t left = line0 + line < repack.lines ? repack.K - k : 0;  // of k
      std::uint32_t across[4][kWords] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i >= left) continue;
        const Float8* const at = source + line0 + line + (k + i) * repack.from_k;
        if constexpr (kWords == 4) {
          const uint4 four = *reinterpret_cast<const uint4*>(at);
          across[i][0] = four.x;
          across[i][1] = four.y;
          across[i][2] = four.z;
          across[i][3] = four.w;
        } else {
          across[i][0] = *reinterpret_cast<const std::uint32_t*>(at);
        }
      }
#pragma unroll
      for (int j = 0; j < 4 * kWords; ++j) {
        std::uint32_t along = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) along |= (across[i][j / 4] >> 8 * (j % 4) & 0xffu) << 8 * i;
        reinterpret_cast<std::uint32_t*>(tile[line + j])[place(line, word)] = along;
      }
    } else {
      auto* const line = reinterpret_cast<unsigned char*>(tile[tx]);
      for (int i = ty; i < 4 * kBytesWords; i += kBytesRows) {
        const bool inside = line0 + tx < repack.lines && k0 + i < repack.K;
        line[4 * place(tx, i / 4) + i % 4] =
            inside ? source[(line0 + tx) * repack.from_line + (k0 + i) * repack.from_k].bits
                   : std::uint8_t{0};
      }
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int line = ty * 4 + tx / 8; line < kLines; line += kBytesLines) {
      const int word = tx % 8 * 4;
      if (line0 + line >= repack.lines || k0 + 4 * word >= repack.pitch) continue;
      target[((line0 + line) * repack.pitch + k0) / 16 + tx % 8] =
          tile[line][place(line, word) / 4];
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Copies a matrix, by gemm_repack_bytes().
inline void launch_repack(const RepackBytes& repack, const Float8* source, std::uint32_t* target) {
  constexpr std::int64_t kMostBlocks = 132 * 8;  // enough to fill any GPU
  const auto launch_with_words = [&]<int kWords>(std::integral_constant<int, kWords>) {
    const std::int64_t tiles = ceil_div<std::int64_t>(repack.pitch, 4 * kBytesWords) *
                               ceil_div(repack.lines, kBytesLines * kWords);
    launch(gemm_repack_bytes<kWords>,
           {dim3(blocks_for(tiles, 1, kMostBlocks)), dim3(kBytesLines, kBytesRows)}, repack,
           repack.columns_lie_in(kWords, source), source, reinterpret_cast<uint4*>(target));
  };
  if (repack.columns_lie_in(4, source)) {
    launch_with_words(std::integral_constant<int, 4>());
  } else {
    launch_with_words(std::integral_constant<int, 1>());
  }
}

inline constexpr int kBytesStep = 4 * kWgmmaStep;  ///< Of k in a stage: rows of 128 bytes.

/// Why an FP8 rung without a fused epilogue does not support a problem, apart from its tile map.
inline Declined why_no_bytes(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f8) {
    return text("multiplies numbers of 8 bits, and the problem asks for ", dtype_name(gemm));
  }
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  return why_no_wgmma();
}

/// Rows of what TMA reads are aligned to 16 bytes.
inline std::int64_t pitch_of(const GemmProblem& gemm) {
  return ceil_div(gemm.K, 16) * std::int64_t{16};
}

/// Copies with rows of pitch_of() bytes, in words: see TiledSource.
struct Copies {
  std::uint32_t *a,  ///< [M] rows
      *b;            ///< [N] rows
};

/// The copies, with the bytes that they take.
inline Copies copies_in(WorkspaceCutter& cutter, const GemmProblem& gemm) {
  const std::int64_t words = pitch_of(gemm) / 4;
  auto* const b = cutter.take<std::uint32_t>(gemm.N * words);
  return {cutter.take<std::uint32_t>(gemm.M * words), b};
}

/// Of the workspace that the copies take.
inline std::size_t bytes_of_copies(const GemmProblem& gemm) {
  WorkspaceCutter cutter(nullptr);
  copies_in(cutter, gemm);
  return cutter.bytes();
}

/// Whether all rows of a are aligned to 16 bytes, if the first one is.
inline bool rows_of_a_fit(const GemmProblem& gemm) { return gemm.K % 16 == 0; }

/// Turns b over, copies a where it must be, and describes both to TMA.
template <class Shape>
TiledSource<Shape> tiled_bytes(const GemmProblem& gemm, const GemmArrays& arrays,
                               const Context& context) {
  const Float8 *a = arrays.a, *b = arrays.b;
  const std::int64_t M = gemm.M, N = gemm.N, pitch = pitch_of(gemm), words = pitch / 4;
  WorkspaceCutter cutter(context.workspace_as<std::byte>());
  const Copies copies = copies_in(cutter, gemm);
  launch_repack({gemm.N, gemm.K, 1, N, pitch}, b, copies.b);
  const std::uint32_t* words_of_a = copies.a;
  if (rows_of_a_fit(gemm) && reinterpret_cast<std::uintptr_t>(a) % 16 == 0) {
    words_of_a = reinterpret_cast<const std::uint32_t*>(a);
  } else {
    launch_repack({gemm.M, gemm.K, gemm.K, 1, pitch}, a, copies.a);
  }
  return {tensor_map(TiledMap{2, {words, M}, {1, words}, {kWgmmaStep, Shape::M}}, words_of_a),
          tensor_map(TiledMap{2, {words, N}, {1, words}, {kWgmmaStep, Shape::N}}, copies.b)};
}

/// c by the threads.
template <class Shape>
RowMajor<Shape> rows_of_c(const GemmProblem& gemm, float* c) {
  return {c, gemm.M, gemm.N,
          reinterpret_cast<std::uintptr_t>(c) % 8 == 0 && columns_in_pairs(gemm)};
}

/// Stores a consumer's accumulators of 64 rows of a tile, from row `first` of c on. 128 threads
/// call it.
template <class Shape>
__device__ void store_rows(const RowMajor<Shape>& result, const WgmmaItem& item, std::int64_t first,
                           const float (&sums)[Shape::N / 2]) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const auto place = result.place(item);
  const std::int64_t row = first + thread / 32 * 16 + lane / 4;
  float* const rows[2] = {result.row(place, row), result.row(place, row + 8)};
  // Two loops: one without a test for tiles that lie in c as a whole, as most do.
  if (result.whole(place, item)) {
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
      const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
      result.store_whole(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
      result.store_whole(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
      const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
      result.store(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
      result.store(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
    }
  }
}

/// How a product is computed with this shape.
template <class Shape>
std::string bytes_in_words(const GemmProblem& gemm) {
  return text(Shape::M, " x ", Shape::N, rows_of_a_fit(gemm) ? "" : ", a copied",
              columns_in_pairs(gemm) ? ", columns in pairs" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
