/// @file fragment_accumulators.cuh
/// @brief The sums of rows that came straight into fragments, and how they are stored;
/// implicit_gemm_direct_fragments.cu explains it.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda_optimized/sparse_conv/shared/fragment_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments {

/// A warp's sums, kWarpRows rows: row 8 i + lane / 4 is half i % 2 of fragment i / 2.
template <class Shape>
struct FragmentSums {
  using T = typename Shape::Number;                                      ///< Of rows and weights.
  static constexpr int kRows = kWarpRows / 16, kColumns = Shape::N / 8;  ///< Fragments.
  float of[kRows][kColumns][4];  ///< As mma.sync spreads them.

  /// Sums begin with the bias.
  __device__ FragmentSums(const GatheredRows<T>& conv, int n0) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int channel = n0 + 8 * j + static_cast<int>(threadIdx.x) % 4 * 2 + e;
        float bias = 0.0f;
        if (conv.bias != nullptr && channel < conv.channels) bias = conv.bias[channel];
#pragma unroll
        for (int i = 0; i < 2 * kRows; ++i) of[i / 2][j][i % 2 * 2 + e] = bias;
      }
    }
  }

  /// Adds the products of kTogether channels.
  /// @param rows this lane's channels of its four rows
  /// @param weights of the lane's tap @param at where in them the first piece lies
  __device__ void add(const uint4 (&rows)[2 * kRows], const char* weights, int at) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int h = 0; h < kColumns / 2; ++h) {
        std::uint32_t right[4];
        ptx::ldmatrix_x4_trans(
            right, weights + (at ^ 2 * h * kPiece) + 4 * step * Shape::kPieces * kPiece);
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const uint4 upper = rows[2 * i], lower = rows[2 * i + 1];
          const std::uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
          const std::uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const std::uint32_t column[2] = {right[2 * j], right[2 * j + 1]};
            if constexpr (std::is_same_v<T, Half>) {
              ptx::mma_m16n8k16_f16(of[i][2 * h + j], step == 0 ? first : second, column);
            } else {
              ptx::mma_m16n8k16_bf16(of[i][2 * h + j], step == 0 ? first : second, column);
            }
          }
        }
      }
    }
  }
};

/// Stores a warp's sums. Lanes exchange pairs with their neighbours, until each has four sums of a
/// row side by side: four lanes store 32 bytes.
template <class Shape, bool kWhole>
__device__ void store_sums(const GatheredRows<typename Shape::Number>& conv,
                           FragmentSums<Shape>& sums, int first, int n0) {
  using T = typename Shape::Number;
  const int lane = static_cast<int>(threadIdx.x) % 32, place = lane % 4;
  const bool odd = place % 2 != 0;
  const auto pair_of = [&](const float* two) {
    const T pair[2] = {rounded_to<T>(activated(conv.activation, two[0])),
                       rounded_to<T>(activated(conv.activation, two[1]))};
    std::uint32_t word;
    std::memcpy(&word, pair, sizeof word);
    return word;
  };
#pragma unroll
  for (int i = 0; i < 2 * FragmentSums<Shape>::kRows; ++i) {
    const int row = first + 8 * i + lane / 4;
#pragma unroll
    for (int j = 0; j < Shape::N / 8; j += 2) {
      uint2 four{pair_of(&sums.of[i / 2][j][i % 2 * 2]),
                 pair_of(&sums.of[i / 2][j + 1][i % 2 * 2])};
      const std::uint32_t given = __shfl_xor_sync(0xFFFFFFFF, odd ? four.x : four.y, 1);
      (odd ? four.x : four.y) = given;
      const int channel = n0 + 8 * j + (odd ? 8 : 0) + 2 * (place & 2);
      if (row >= conv.rows || channel >= conv.channels) continue;
      T* const to = conv.to + std::int64_t{row} * conv.channels + channel;
      if constexpr (kWhole) {
        *reinterpret_cast<uint2*>(to) = four;
      } else {
        T numbers[4];
        std::memcpy(numbers, &four, sizeof numbers);
        for (int e = 0; e < 4 && channel + e < conv.channels; ++e) to[e] = numbers[e];
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments
