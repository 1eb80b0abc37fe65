/// @file winograd_three.cuh
/// @brief F(3, 3) along a line of elements, and the weights of rows in pieces of three taps.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// F(3, 3), points 0, 1, -1, 2 and infinity. Two rows of G have sixths, which are no floats: these
/// are three times as large, and so are the sums m[2] and m[3].
struct Winograd3 {
  static constexpr int kM = 3, kN = 5;  ///< outputs, products

  /// G g. @param apart floats between the numbers of the result
  __device__ static void times_g(const float (&g)[3], int apart, float* to) {
    const float ends = g[0] + g[2];
    to[0] = 0.5f * g[0];
    to[apart] = -0.5f * (ends + g[1]);
    to[2 * apart] = -0.5f * (ends - g[1]);
    to[3 * apart] = 0.5f * g[0] + g[1] + 2 * g[2];
    to[4 * apart] = g[2];
  }
  /// B^T d of five numbers. nvcc 13 makes two additions of 2 * a + b, but not of fmaf().
  __device__ static void times_b(const float* d, float (&to)[kN]) {
    const float odd = d[3] - d[1];
    to[0] = fmaf(2.0f, d[0] - d[2], odd);
    to[1] = fmaf(-2.0f, d[1], d[3] - d[2]);
    to[2] = fmaf(-3.0f, d[2], fmaf(2.0f, d[1], d[3]));
    to[3] = odd;
    to[4] = fmaf(-2.0f, odd, d[4] - d[2]);
  }
  /// A^T m. Where y is whole, so are both thirds, but for halves.
  __device__ static void times_a(const float (&m)[kN], float (&y)[kM]) {
    const float sum = third_of(m[2] + m[3]), odd = third_of(fmaf(2.0f, m[3], -m[2]));
    y[0] = m[0] + m[1] + sum;
    y[1] = m[1] + odd;
    y[2] = fmaf(2.0f, sum, y[1] + m[4]);
  }
  /// A third: that very float, if there is one.
  __device__ static float third_of(float number) {
    constexpr float kThird = 1.0f / 3;
    const float near = number * kThird;
    return fmaf(fmaf(-3.0f, near, number), kThird, near);
  }
};

/// A thread's parts of the weights of some channels: pieces of a row, on their way from
/// [K][C/groups][R][S] to [channel][r][kN][kPieces][kFilters].
template <int kThreads, int kFilters, int kPieces, int kMostRows>
class PieceWeights {
 public:
  static constexpr int kRowParts = kPieces * kFilters;          ///< Of a row of all filters,
  static constexpr int kRowFloats = Winograd3::kN * kRowParts;  ///< and what becomes of them.

  /// Loads them, zeros for filters and columns that there are not; nothing waits for them yet.
  /// @param rows of a filter, of all these channels: at most kMostRows
  __device__ void load(const Conv2dProblem& conv, const float* weights, std::int64_t filter_size,
                       int filters, int rows) {
    rows_ = rows;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int part = i * kThreads + static_cast<int>(threadIdx.x), row = part / kRowParts;
      const int f = part % kFilters, s0 = part / kFilters % kPieces * 3;
      const bool there = row < rows && f < filters;
      const float* from = weights + (there ? f * filter_size + (row * conv.S + s0) : 0);
#pragma unroll
      for (int s = 0; s < 3; ++s) g_[i][s] = there && s0 + s < conv.S ? from[s] : 0.0f;
    }
  }

  /// Stores them, transformed.
  __device__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int part = i * kThreads + static_cast<int>(threadIdx.x), row = part / kRowParts;
      if (row < rows_)
        Winograd3::times_g(g_[i], kRowParts, to + row * kRowFloats + part % kRowParts);
    }
  }

 private:
  static constexpr int kParts = ceil_div(kMostRows * kRowParts, kThreads);
  float g_[kParts][3];
  int rows_;
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
