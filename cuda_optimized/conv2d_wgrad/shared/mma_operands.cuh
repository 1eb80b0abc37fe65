/// @file mma_operands.cuh
/// @brief What a lane holds of the weight gradient's operands and accumulators: runs of
/// neighbouring filters and columns, in the order of 16-byte loads and stores;
/// implicit_gemm/mma_tf32.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// Rounds to TF32, as cvt.rna.tf32 does: to nearest, away from zero where two are as near.
/// mma.sync ignores the low 13 bits, so adding half of the last bit that counts is enough; the
/// maximum keeps a NaN whose bits run over into the sign. (Not a negative one; arithmetic makes
/// positive ones.) For cvt.rna.tf32 the compiler would make a comparison, and an addition under its
/// condition, which has to wait for it; this is one instruction from compute capability 9.0 on.
__device__ inline std::uint32_t rounded(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return static_cast<std::uint32_t>(max(static_cast<int>(bits + 0x1000), static_cast<int>(bits)));
}

/// Where value i of a lane lies in its warp's rows or columns, of which the lane has kCount: fours
/// that are 32 apart, then a pair. @param slot of the lane among those with the same pixel, 0 to 7
template <int kCount>
__device__ inline int place_of(int i, int slot) {
  const int four = i / 4, width = four < kCount / 4 ? 4 : 2;
  return 32 * four + width * slot + i % 4;
}

/// Loads these values of one pixel.
template <int kCount>
__device__ inline void load_run(const float* row, int slot, float (&values)[kCount]) {
  static_assert(kCount % 2 == 0, "fours, and a pair at most");
#pragma unroll
  for (int i = 0; i < kCount / 4 * 4; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(row + place_of<kCount>(i, slot));
    values[i] = four.x;
    values[i + 1] = four.y;
    values[i + 2] = four.z;
    values[i + 3] = four.w;
  }
  if constexpr (kCount % 4 != 0) {
    constexpr int i = kCount - 2;
    const float2 two = *reinterpret_cast<const float2*>(row + place_of<kCount>(i, slot));
    values[i] = two.x;
    values[i + 1] = two.y;
  }
}

/// The slots of the columns: lanes that hold neighbouring accumulators of a row, those of columns 2
/// place and 2 place + 1 of a fragment, get slots place and place + 4. Then each of a lane's two
/// stores writes whole sectors, together with its neighbours'.
__device__ inline int column_slot(int column) { return column % 2 * 4 + column / 2; }

/// A lane's operands for 8 pixels: pixels lane % 4 and 4 more than that.
template <MmaShape S>
struct Factors {
  float a[2][S.warp_m / 8],  ///< Of the two pixels: dy of the lane's filters
      b[2][S.warp_n / 8];    ///< and x of its columns.

  /// The eight lanes of a quarter of a load have four pixels and two neighbouring slots of rows, or
  /// slots 4 apart of columns: the pitches bring these to different banks.
  /// @param a_tile, b_tile the warp's rows and columns of the first of the 8 pixels
  __device__ void load(const float* a_tile, const float* b_tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = lane % 4 + 4 * half;
      load_run<S.warp_m / 8>(a_tile + pixel * S.pitch_a(), lane / 4, a[half]);
      load_run<S.warp_n / 8>(b_tile + pixel * S.pitch_b(), column_slot(lane / 4), b[half]);
    }
  }

  /// Adds their products. Value i of a is row lane / 4 of fragment i / 2, or the row 8 below;
  /// value j of b is column lane / 4 of fragment j.
  __device__ void multiply(float (&sums)[S.warp_m / 16][S.warp_n / 8][4]) const {
    std::uint32_t columns[S.warp_n / 8][2];
#pragma unroll
    for (int j = 0; j < S.warp_n / 8; ++j) {
      columns[j][0] = rounded(b[0][j]);
      columns[j][1] = rounded(b[1][j]);
    }
#pragma unroll
    for (int i = 0; i < S.warp_m / 16; ++i) {
      const std::uint32_t rows[4] = {rounded(a[0][2 * i]), rounded(a[0][2 * i + 1]),
                                     rounded(a[1][2 * i]), rounded(a[1][2 * i + 1])};
#pragma unroll
      for (int j = 0; j < S.warp_n / 8; ++j) ptx::mma_m16n8k8_tf32(sums[i][j], rows, columns[j]);
    }
  }
};

/// Stores a warp's accumulators to its tile's part, [S.M][S.N].
template <MmaShape S>
__device__ inline void store_sums(const float (&sums)[S.warp_m / 16][S.warp_n / 8][4], int warp_m,
                                  int warp_n, float* part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = lane % 4;
  constexpr int kA = S.warp_m / 8, kB = S.warp_n / 8;
#pragma unroll
  for (int i = 0; i < kA; ++i) {
    const auto& row = sums[i / 2];
    float* const to = part + (warp_m + place_of<kA>(i, lane / 4)) * S.N + warp_n;
#pragma unroll
    for (int next_column = 0; next_column < 2; ++next_column) {
      const int v = i % 2 * 2 + next_column, slot = column_slot(2 * place + next_column);
#pragma unroll
      for (int j = 0; j < kB / 4 * 4; j += 4) {
        reinterpret_cast<float4*>(to)[place_of<kB>(j, slot) / 4] = {row[j][v], row[j + 1][v],
                                                                    row[j + 2][v], row[j + 3][v]};
      }
      if constexpr (kB % 4 != 0) {
        constexpr int j = kB - 2;
        reinterpret_cast<float2*>(to)[place_of<kB>(j, slot) / 2] = {row[j][v], row[j + 1][v]};
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
