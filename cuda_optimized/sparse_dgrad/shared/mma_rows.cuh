/// @file mma_rows.cuh
/// @brief Tiles in shared memory whose rows are contiguous along k, their multiplication by
/// mma.sync, and the store of its accumulators.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {

/// A tile in shared memory: rows of S::kBytes, whose pieces of 16 bytes are swizzled.
template <class T, class S>
struct Rows {
  static constexpr int kNumbers = 16 / static_cast<int>(sizeof(T));  ///< of a piece
  static constexpr int kPieces = S::kBytes / 16;                     ///< of a row
  static constexpr int kStep = kPieces * kNumbers;                   ///< elements of a row
  /// Where piece `piece` of row `row` begins. A row of 128 bytes spans the 32 banks once; two rows
  /// of 64 bytes do, so the swizzle then changes every second row.
  HOST_DEVICE static int at(int row, int piece) {
    const int turn = kPieces == 8 ? row : row / 2;
    return row * kStep + (piece ^ turn % kPieces) * kNumbers;
  }
};

/// Adds the products of a stage to a warp's accumulators, 32 x kWarpN: fragments of mma.sync.
/// @param m0 the warp's first row of a
/// @param n0 its first row of b
template <class T, class S>
__device__ void multiply(const T* a_tile, const T* b_tile, int m0, int n0,
                         float (&sums)[2][S::kWarpN / 8][4]) {
  using R = Rows<T, S>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int piece = 0; piece < R::kPieces; piece += 2) {
    std::uint32_t a[2][4], b[S::kWarpN / 8][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::ldmatrix_x4(a[i], a_tile + R::at(m0 + 16 * i + lane % 16, piece + lane / 16));
      sparse_wgrad::MmaNumber<T>::round(a[i]);
    }
#pragma unroll
    for (int j = 0; j < S::kWarpN / 8; j += 2) {
      std::uint32_t two[4];
      ptx::ldmatrix_x4(two,
                       b_tile + R::at(n0 + 8 * j + lane % 8 + lane / 16 * 8, piece + lane / 8 % 2));
      sparse_wgrad::MmaNumber<T>::round(two);
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < S::kWarpN / 8; ++j)
        sparse_wgrad::MmaNumber<T>::multiply(sums[i][j], a[i], b[j]);
    }
  }
}

/// Stores two contiguous accumulators.
template <class T, bool kAligned>
__device__ void store_two(T* to, float first, float second, int count) {
  if constexpr (kAligned && sizeof(T) == 4) {
    *reinterpret_cast<float2*>(to) = float2{first, second};
  } else if constexpr (kAligned) {
    *reinterpret_cast<std::uint32_t*>(to) =
        rounded_to<T>(first).bits | std::uint32_t{rounded_to<T>(second).bits} << 16;
  } else {
    to[0] = rounded_to<T>(first);
    if (count > 1) to[1] = rounded_to<T>(second);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
