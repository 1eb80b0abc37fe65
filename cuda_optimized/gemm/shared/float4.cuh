/// @file float4.cuh
/// @brief Four neighbours of a matrix's row at a time, also where they are not a float4.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Columns `column` ... `column` + 3 of row `row` of a row-major matrix; zeros outside of it.
/// `row` and `column` are not negative, and `column` is a multiple of 4.
/// @tparam kAligned the matrix begins at a multiple of 16 bytes, and `columns` is a multiple of 4:
/// then the four are one load, and all of them are inside, or none
template <bool kAligned>
__device__ inline float4 load_four(const float* matrix, int rows, int columns, std::int64_t row,
                                   std::int64_t column) {
  float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
  if (row >= rows || column >= columns) return four;
  const float* from = matrix + row * columns + column;
  if constexpr (kAligned) {
    four = *reinterpret_cast<const float4*>(from);
  } else {
    four.x = from[0];
    if (column + 1 < columns) four.y = from[1];
    if (column + 2 < columns) four.z = from[2];
    if (column + 3 < columns) four.w = from[3];
  }
  return four;
}

/// to[0 ... 3] = from[0 ... 3] in one load; `from` is a multiple of 16 bytes.
__device__ inline void read_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

/// Stores what of the four lies inside of the matrix; otherwise as load_four().
template <bool kAligned>
__device__ inline void store_four(float* matrix, int rows, int columns, std::int64_t row,
                                  std::int64_t column, float4 four) {
  if (row >= rows || column >= columns) return;
  float* to = matrix + row * columns + column;
  if constexpr (kAligned) {
    *reinterpret_cast<float4*>(to) = four;
  } else {
    to[0] = four.x;
    if (column + 1 < columns) to[1] = four.y;
    if (column + 2 < columns) to[2] = four.z;
    if (column + 3 < columns) to[3] = four.w;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
