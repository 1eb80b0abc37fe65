/// @file winograd_half.cuh
/// @brief The transforms of F(4, 3) along a line of numbers, over points that round less;
/// winograd_points.cu explains them.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// x / 15, to the bit: the product with the float next to 1/15, and a fifteenth of what it is off
/// by (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000", 1990). That
/// is three instructions, where a division has some ten, and a branch for denormals.
__device__ inline float fifteenth(float x) {
  constexpr float kInverse = 1.0f / 15;
  const float nearly = x * kInverse;
  return fmaf(fmaf(-15.0f, nearly, x), kInverse, nearly);
}

/// F(4, 3), points 0, 1, -1, 1/2, -2 and infinity. Rows of G are whole, and A's columns divide by
/// what made them so.
struct WinogradHalf {
  static constexpr int kM = 4, kN = 6;  ///< outputs, products

  /// G g, its rows times 1, 3, 3, 15/4, 15 and 1.
  __device__ static void times_g(const double (&g)[3], double (&to)[kN]) {
    to[0] = g[0], to[5] = g[2];
    to[1] = g[0] + g[1] + g[2];
    to[2] = -(g[0] - g[1] + g[2]);
    to[3] = -(4 * g[0] + 2 * g[1] + g[2]);
    to[4] = g[0] - 2 * g[1] + 4 * g[2];
  }
  /// B^T d, in place.
  __device__ static void times_b(float (&d)[kN]) {
    const float q0 = d[3] - d[1], q1 = d[4] - d[2];            // times x^2 - 1
    const float p0 = q0 + 1.5f * d[2], p1 = q1 + 1.5f * d[3];  // times x^2 + 3/2 x - 1
    d[0] = d[0] - d[2] + 1.5f * q0 + q1;
    d[5] = d[5] - d[3] + 1.5f * q1 - q0;
    d[1] = p1 + p0, d[2] = p1 - p0;
    d[3] = q1 + 2 * q0, d[4] = q1 - q0 / 2;
  }
  /// A^T m, in place: the first kM are the result.
  __device__ static void times_a(float (&m)[kN]) {
    const float even = 5 * (m[1] + m[2]), odd = 5 * (m[1] - m[2]), half = m[3], two = m[4];
    m[0] += fifteenth(even + 4 * half + two);
    m[1] = fifteenth(odd + 2 * half - 2 * two);
    m[2] = fifteenth(even + half + 4 * two);
    m[3] = m[5] + fifteenth(odd + half / 2 - 8 * two);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
