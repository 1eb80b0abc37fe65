/// @file repack_bytes.cuh
/// @brief Copies matrices of numbers of 8 bits into the workspace, so that k runs along memory.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/float8.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// A matrix whose rows or columns are K long; strides are in numbers.
struct RepackBytes {
  int lines, K;                    ///< As many rows of the copy, each of K numbers.
  std::int64_t from_line, from_k;  ///< From a line to the next, and from a number of it.
  std::int64_t pitch;              ///< From a row of the copy to the next: a multiple of 16, >= K.

  /// Whether lines are columns, and four of them lie in a word at every k. (Of rows, from_k is 1.)
  bool columns_in_words(const Float8* source) const {
    return from_k % 4 == 0 && reinterpret_cast<std::uintptr_t>(source) % 4 == 0;
  }
};

inline constexpr int kBytesLines = 32, kBytesWords = 32;  ///< of a tile: 32 lines, 128 numbers each
inline constexpr int kBytesRows = 8;                      ///< rows of threads

/// target [lines][pitch] = source, with zeros behind each line. Block (kBytesLines, kBytesRows). A
/// tile goes through shared memory: it is read along the lines' neighbours, as a row-major b lies,
/// and written along k, 16 numbers at a time. @param words columns_in_words()
static __global__ void __launch_bounds__(kBytesLines* kBytesRows)
    repack_bytes(RepackBytes repack, bool words, const Float8* source, uint4* target) {
  __shared__ std::uint32_t tile[kBytesLines][kBytesWords + 1];  // a column meets all banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(repack.pitch, 4 * kBytesWords);
  const std::int64_t tiles = tiles_k * ceil_div(repack.lines, kBytesLines);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t line0 = index / tiles_k * kBytesLines;
    const std::int64_t k0 = index % tiles_k * (4 * kBytesWords);
    if (words) {
      // A square of 4 x 4 numbers: four words across the lines become four along k. A warp reads 32
      // lines at 16 k, and its stores meet all banks.
      const int line = tx % 8 * 4, word = ty * 4 + tx / 8;
      const std::int64_t k = k0 + 4 * word, step = repack.from_k / 4;  // in words
      std::int64_t at = (line0 + line) / 4 + k * step;
      const std::int64_t left = line0 + line < repack.lines ? repack.K - k : 0;  // of k
      std::uint32_t across[4];
#pragma unroll
      for (int i = 0; i < 4; ++i, at += step) {
        across[i] = i < left ? reinterpret_cast<const std::uint32_t*>(source)[at] : 0u;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        std::uint32_t along = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) along |= (across[i] >> 8 * j & 0xffu) << 8 * i;
        tile[line + j][word] = along;
      }
    } else {
      auto* const line = reinterpret_cast<unsigned char*>(tile[tx]);
      for (int i = ty; i < 4 * kBytesWords; i += kBytesRows) {
        const bool inside = line0 + tx < repack.lines && k0 + i < repack.K;
        line[i] = inside ? source[(line0 + tx) * repack.from_line + (k0 + i) * repack.from_k].bits
                         : std::uint8_t{0};
      }
    }
    __syncthreads();  // separates these stores from the loads below
    const int line = ty * 4 + tx / 8, word = tx % 8 * 4;
    if (line0 + line < repack.lines && k0 + 4 * word < repack.pitch) {
      const std::uint32_t* const four = &tile[line][word];
      target[((line0 + line) * repack.pitch + k0) / 16 + tx % 8] = {four[0], four[1], four[2],
                                                                    four[3]};
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Copies a matrix, by repack_bytes().
inline void launch_repack(const RepackBytes& repack, const Float8* source, std::uint32_t* target) {
  constexpr std::int64_t kMostBlocks = 132 * 8;  // enough to fill any GPU
  const std::int64_t tiles =
      ceil_div<std::int64_t>(repack.pitch, 4 * kBytesWords) * ceil_div(repack.lines, kBytesLines);
  launch(repack_bytes, {dim3(blocks_for(tiles, 1, kMostBlocks)), dim3(kBytesLines, kBytesRows)},
         repack, repack.columns_in_words(source), source, reinterpret_cast<uint4*>(target));
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
