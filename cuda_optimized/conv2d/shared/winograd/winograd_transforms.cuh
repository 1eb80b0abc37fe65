/// @file winograd_transforms.cuh
/// @brief The transforms of F(4, 3) and of F(2, 3) along a line of elements.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// F(2, 3): two outputs of three taps by four products.
struct Winograd2 {
  static constexpr int kM = 2, kN = 4;  ///< outputs, products
  static constexpr int kScale = 1;      ///< how much larger the outputs are

  /// G g.
  __device__ static void times_g(const double (&g)[3], double (&to)[kN]) {
    to[0] = g[0];
    to[1] = (g[0] + g[1] + g[2]) / 2;
    to[2] = (g[0] - g[1] + g[2]) / 2;
    to[3] = g[2];
  }
  /// B^T d, in place.
  __device__ static void times_b(float (&d)[kN]) {
    const float d1 = d[1], d2 = d[2];
    d[0] -= d2, d[1] = d1 + d2, d[2] = d2 - d1, d[3] -= d1;
  }
  /// A^T m, in place: the first kM are the result.
  __device__ static void times_a(float (&m)[kN]) {
    const float m1 = m[1], m2 = m[2];
    m[0] += m1 + m2, m[1] = m1 - m2 + m[3];
  }
};

/// F(4, 3), points 0, 1, -1, 2, -2 and infinity. It has 3 G in place of G: thirds are no floats,
/// and halves are.
struct Winograd4 {
  static constexpr int kM = 4, kN = 6;  ///< outputs, products
  static constexpr int kScale = 3;      ///< how much larger the outputs are

  /// 3 G g.
  __device__ static void times_g(const double (&g)[3], double (&to)[kN]) {
    to[0] = 0.75 * g[0];
    to[1] = -(g[0] + g[1] + g[2]) / 2;
    to[2] = -(g[0] - g[1] + g[2]) / 2;
    to[3] = (g[0] + 2 * g[1] + 4 * g[2]) / 8;
    to[4] = (g[0] - 2 * g[1] + 4 * g[2]) / 8;
    to[5] = 3 * g[2];
  }
  /// B^T d, in place. Points come in pairs, which share their even and odd parts.
  __device__ static void times_b(float (&d)[kN]) {
    const float even1 = d[4] - 4 * d[2], odd1 = d[3] - 4 * d[1];
    const float even2 = d[4] - d[2], odd2 = 2 * (d[3] - d[1]);
    d[0] = 4 * d[0] - 5 * d[2] + d[4];
    d[5] = 4 * d[1] - 5 * d[3] + d[5];
    d[1] = even1 + odd1, d[2] = even1 - odd1;
    d[3] = even2 + odd2, d[4] = even2 - odd2;
  }
  /// A^T m, in place: the first kM are the result.
  __device__ static void times_a(float (&m)[kN]) {
    const float sum1 = m[1] + m[2], difference1 = m[1] - m[2];
    const float sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    m[0] += sum1 + sum2;
    m[1] = difference1 + 2 * difference2;
    m[2] = sum1 + 4 * sum2;
    m[3] = difference1 + 8 * difference2 + m[5];
  }
};

/// G g G^T of a filter's channel: kN x kN numbers, each rounded once. The transform is in double,
/// which takes no time beside the products. @param to called with a place and its number
template <class W, class To>
__device__ void transform_filter(const float* g, const To& to) {
  double half[W::kN][3];
#pragma unroll
  for (int s = 0; s < 3; ++s) {
    double column[W::kN];
    W::times_g({g[s], g[3 + s], g[6 + s]}, column);
#pragma unroll
    for (int i = 0; i < W::kN; ++i) half[i][s] = column[i];
  }
#pragma unroll
  for (int i = 0; i < W::kN; ++i) {
    double row[W::kN];
    W::times_g(half[i], row);
#pragma unroll
    for (int j = 0; j < W::kN; ++j) to(i * W::kN + j, static_cast<float>(row[j]));
  }
}

/// Applies along(line) to the columns of a kN x kN matrix, and then to its rows, the first `rows`.
template <int kN, class Along>
__device__ void both_ways(float (&matrix)[kN][kN], int rows, const Along& along) {
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    float column[kN];
#pragma unroll
    for (int i = 0; i < kN; ++i) column[i] = matrix[i][j];
    along(column);
#pragma unroll
    for (int i = 0; i < kN; ++i) matrix[i][j] = column[i];
  }
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    if (i < rows) along(matrix[i]);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
