/// @file implicit_gemm.cpp
/// @brief Implicit GEMM: column elements are found by index arithmetic and never stored.
///
/// - Before: im2col_gemm.cpp
/// - After: im2col_gemm_blocked.cpp
/// - On the GPU: cuda_naive/conv2d/implicit_gemm.cu
///
/// **The idea.** The loops are those of a GEMM, over i, j and kk. An element of the column matrix
/// is not loaded from a copy: its row and column determine its position in x. im2col does nothing
/// but decode an index into its digits.
///
///     i  = (n * P + p) * Q + q        a row of A: one window          N*P*Q rows
///     kk = (c * R + r) * S + s        a column of A: one tap          C/G*R*S columns
///     j  = k                          a column of B: one filter       K/G columns
///
///     A[i,kk] = x[n, c, p * stride - pad + r * dilation, ...]  or 0
///     B[kk,j] = weights[j,kk]
///
/// (Chetlur et al., "cuDNN: efficient primitives for deep learning", 2014, form the matrix tile by
/// tile.) j is the innermost loop, so that each A[i,kk] is decoded once for all filters of the
/// group.
///
/// **Expect.** No column matrix and no workspace. Instead, there are two divisions for each
/// A[i,kk], shared by K/G multiply-adds. With few filters the divisions dominate the time.
/// **Costs.** B is read with a stride. Supports layout NCHW and float32 only.
#include <vector>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const float* x = arrays.x;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  float* y = arrays.y;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t gemm_m = std::int64_t{conv.N} * conv.P * conv.Q;
  const std::int64_t gemm_k = std::int64_t{group_c} * conv.R * conv.S;

  std::vector<float> sums(static_cast<std::size_t>(group_k));  // one row of A * B
  for (int g = 0; g < conv.groups; ++g) {
    const int c0 = g * group_c, k0 = g * group_k;  // the group's first channels
    const float* b = weights + k0 * gemm_k;        // its filters: [K/G][C/G * R * S]
    for (std::int64_t i = 0; i < gemm_m; ++i) {
      const int q = static_cast<int>(i % conv.Q);
      const int p = static_cast<int>(i / conv.Q % conv.P);
      const int n = static_cast<int>(i / conv.Q / conv.P);
      for (int j = 0; j < group_k; ++j) {
        sums[static_cast<std::size_t>(j)] = bias ? bias[k0 + j] : 0.0f;
      }
      for (std::int64_t kk = 0; kk < gemm_k; ++kk) {
        const int s = static_cast<int>(kk % conv.S);
        const int r = static_cast<int>(kk / conv.S % conv.R);
        const int c = static_cast<int>(kk / conv.S / conv.R);
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
        if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) continue;  // A[i,kk] = 0
        const float a = x[x_at(n, c0 + c, h, w)];
        for (int j = 0; j < group_k; ++j) {
          sums[static_cast<std::size_t>(j)] += a * b[j * gemm_k + kk];
        }
      }
      for (int j = 0; j < group_k; ++j) {
        y[y_at(n, k0 + j, p, q)] = activated(conv.activation, sums[static_cast<std::size_t>(j)]);
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
