/// @file warp_accumulators.cuh
/// @brief The accumulators of a warp's tile, in mma.sync's fragment layout, and the addresses of
/// its operands.
#pragma once

#include <type_traits>

#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// How the pieces of float weights [k][c] are permuted: a warp reads rows k = 0 ... 3, and in each
/// 8 contiguous pieces. Two pieces of each of the four rows are read together, from different
/// banks.
HOST_DEVICE constexpr int permutation_of_weights(int row) { return row % 2 * 4 + row / 2 % 2 * 2; }

/// The offset of piece `piece` in a row of a stage's weights, in bytes.
template <class T, int kRowBytes>
HOST_DEVICE constexpr int place_of_weights(int row, int piece) {
  if constexpr (std::is_same_v<T, float>) {
    return row * kRowBytes + (piece ^ permutation_of_weights(row)) * kPiece;
  } else {
    return row * kRowBytes + (piece ^ permutation<kRowBytes / kPiece>(row)) * kPiece;
  }
}

/// A warp's accumulators: kWarpRows rows, kN channels, in mma.sync's fragment layout.
template <class T, int kN>
struct WarpSums {
  static constexpr int kRows = kWarpRows / 16, kColumns = kN / 8;  ///< Fragments down, across.
  float of[kRows][kColumns][4] = {};                               ///< The accumulators.

  /// Of this thread in its warp.
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  /// The address of a lane's first piece in a warp's rows of kRowBytes: in row lane % 16, and there
  /// the first piece for lanes 0 ... 15, the second for the others, as ldmatrix requires.
  template <int kRowBytes>
  __device__ static int first_left() {
    const int row = lane() % 16;
    return row * kRowBytes + (lane() / 16 ^ permutation<kRowBytes / kPiece>(row)) * kPiece;
  }
  /// The address of a lane's first piece of the weights from channel n0 on, a multiple of 32.
  template <int kRowBytes>
  __device__ static int first_right(int n0) {
    if constexpr (std::is_same_v<T, float>) {
      return place_of_weights<T, kRowBytes>(lane() % 4, n0 / 4 + lane() / 4);
    } else {
      return place_of_weights<T, kRowBytes>(lane() % 16, n0 / 8 + lane() / 16);
    }
  }

  /// Adds products, kDeep bytes of the rows from byte `deep` on, a multiple of kDeep. All offsets
  /// that depend on the lane are found once, before the loop over the steps: what is left are
  /// constants, and XORs with them that undo the permutation.
  /// @param a the warp's rows, of kBytesA each; left_at = first_left()
  /// @param b the weights' rows, of kBytesB each; right_at = first_right()
  template <int kBytesA, int kBytesB>
  __device__ void add(const char* a, int left_at, const char* b, int right_at, int deep) {
    std::uint32_t left[kRows][4];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      ptx::ldmatrix_x4(left[i], a + (left_at ^ deep) + 16 * i * kBytesA);
    }
    if constexpr (std::is_same_v<T, float>) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) left[i][j] = ptx::to_tf32(__uint_as_float(left[i][j]));
      }
      // Channel 32 h + 4 g + j of the tile is column g of fragment 4 h + j: so a lane's elements of
      // four fragments are contiguous.
#pragma unroll
      for (int h = 0; h < kColumns / 4; ++h) {
        const auto* const at =
            reinterpret_cast<const float4*>(b + right_at + deep / 4 * kBytesB + 8 * h * kPiece);
        const float4 first = *at, second = at[4 * kBytesB / kPiece];  // row k, row k + 4
        multiply(left, first.x, second.x, 4 * h);
        multiply(left, first.y, second.y, 4 * h + 1);
        multiply(left, first.z, second.z, 4 * h + 2);
        multiply(left, first.w, second.w, 4 * h + 3);
      }
    } else {
#pragma unroll
      for (int h = 0; h < kColumns / 2; ++h) {
        // Four matrices: 16 rows of 8 channels, and of the next 8. Transposed on their way.
        std::uint32_t right[4];
        ptx::ldmatrix_x4_trans(right, b + (right_at ^ 2 * h * kPiece) + deep / 2 * kBytesB);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const std::uint32_t fragment[2] = {right[2 * j], right[2 * j + 1]};
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            if constexpr (std::is_same_v<T, Half>) {
              ptx::mma_m16n8k16_f16(of[i][2 * h + j], left[i], fragment);
            } else {
              ptx::mma_m16n8k16_bf16(of[i][2 * h + j], left[i], fragment);
            }
          }
        }
      }
    }
  }

  /// Adds the products with one column of fragments.
  __device__ void multiply(const std::uint32_t (&left)[kRows][4], float b0, float b1, int column) {
    const std::uint32_t right[2] = {ptx::to_tf32(b0), ptx::to_tf32(b1)};
#pragma unroll
    for (int i = 0; i < kRows; ++i) ptx::mma_m16n8k8_tf32(of[i][column], left[i], right);
  }

  /// Contiguous accumulators of a row that a thread has.
  static constexpr int kTogether = std::is_same_v<T, float> ? 4 : 2;
  /// Calls visit(row, channel, values) for each group of kTogether contiguous accumulators of this
  /// thread; rows and channels count within the warp's tile.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    const int group = lane() / 4, place = lane() % 4;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * i + 8 * half + group;
        if constexpr (std::is_same_v<T, float>) {
#pragma unroll
          for (int h = 0; h < kColumns / 4; ++h) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float values[4];
#pragma unroll
              for (int j = 0; j < 4; ++j) values[j] = of[i][4 * h + j][2 * half + e];
              visit(row, 32 * h + 8 * place + 4 * e, values);
            }
          }
        } else {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            const float values[2] = {of[i][j][2 * half], of[i][j][2 * half + 1]};
            visit(row, 8 * j + 2 * place, values);
          }
        }
      }
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
