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
  std::int64_t pitch;              ///< From a row of the copy to the next: a multiple of 4, >= K.
};

inline constexpr int kBytesLines = 32, kBytesWords = 32;  ///< of a tile: 32 lines, 128 numbers each
inline constexpr int kBytesRows = 8;                      ///< rows of threads

/// target [lines][pitch] = source, with zeros behind each line. Block (kBytesLines, kBytesRows). A
/// tile goes through shared memory: it is read along the lines' neighbours, as a row-major b lies,
/// and written along k, four numbers at a time.
static __global__ void __launch_bounds__(kBytesLines* kBytesRows)
    repack_bytes(RepackBytes repack, const Float8* source, std::uint32_t* target) {
  __shared__ std::uint32_t tile[kBytesLines][kBytesWords + 1];  // a column meets all banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t words = repack.pitch / 4, tiles_k = ceil_div<std::int64_t>(words, kBytesWords);
  const std::int64_t tiles = tiles_k * ceil_div(repack.lines, kBytesLines);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t line0 = index / tiles_k * kBytesLines, word0 = index % tiles_k * kBytesWords;
    auto* const line = reinterpret_cast<unsigned char*>(tile[tx]);
    for (int i = ty; i < 4 * kBytesWords; i += kBytesRows) {
      const std::int64_t k = 4 * word0 + i;
      const bool inside = line0 + tx < repack.lines && k < repack.K;
      line[i] = inside ? source[(line0 + tx) * repack.from_line + k * repack.from_k].bits
                       : std::uint8_t{0};
    }
    __syncthreads();  // separates these stores from the loads below
    for (int i = ty; i < kBytesLines; i += kBytesRows) {
      if (line0 + i < repack.lines && word0 + tx < words) {
        target[(line0 + i) * words + word0 + tx] = tile[i][tx];
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Copies a matrix, by repack_bytes().
inline void launch_repack(const RepackBytes& repack, const Float8* source, std::uint32_t* target) {
  constexpr std::int64_t kMostBlocks = 132 * 8;  // enough to fill any GPU
  const std::int64_t tiles =
      ceil_div<std::int64_t>(repack.pitch / 4, kBytesWords) * ceil_div(repack.lines, kBytesLines);
  launch(repack_bytes, {dim3(blocks_for(tiles, 1, kMostBlocks)), dim3(kBytesLines, kBytesRows)},
         repack, source, target);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
