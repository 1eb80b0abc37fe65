/// @file permuted_pieces.cuh
/// @brief Rows in shared memory as tensor cores read them: in pieces of 16 bytes, permuted.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

constexpr int kDeep = 32;      ///< Bytes along k of one mma.sync or wgmma: 8 floats or 16 halves.
constexpr int kWarpRows = 32;  ///< Of a tile, whose taps are found together.

/// How the pieces of a row are permuted: piece p lies where p ^ permutation(row) would without it.
/// Pieces of the same number in eight rows, which ldmatrix reads together, lie in different banks.
template <int kPieces>
HOST_DEVICE constexpr int permutation(int row) {
  static_assert(kPieces == 2 || kPieces == 4 || kPieces % 8 == 0);
  return kPieces == 2 ? row / 4 % 2 : kPieces == 4 ? row / 2 % 4 : row % 8;
}

/// Copies a piece of which `left` elements exist, and zeros behind them.
template <bool kPieces, class T>
__device__ inline void copy_piece(char* to, const T* from, int left) {
  if constexpr (kPieces) {
    ptx::cp_async<kPiece>(to, from, left > 0 ? kPiece : 0);
  } else {
    constexpr int kCount = kPiece / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kCount; ++i) reinterpret_cast<T*>(to)[i] = i < left ? from[i] : T{};
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
