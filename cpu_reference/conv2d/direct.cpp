/// @file direct.cpp
/// @brief Definition of conv2d: seven nested loops, one for each index of the formula.
///
/// - After: reordered.cpp, cuda_naive/conv2d/direct.cu, im2col_gemm.cpp, winograd_1d.cpp
/// - On the GPU: cuda_naive/conv2d/direct.cu
///
/// **The idea.** This is the definition: every output is the sum of its window's products, as in
/// the formula (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016).
/// Of the seven nested loops, four select the output (n, k, p, q) and three the product (c, r, s).
/// Descriptions with "five loops" omit the batch and fix one of the other indices.
///
///     for n  for k  for p  for q          which output
///       for c  for r  for s               which product of it
///         y[n,k,p,q] += x[n, c, p + r, q + s] * w[k,c,r,s]
///
/// **Expect.** About one multiply-add per nanosecond: the sum is one chain of dependent additions.
/// **Costs.** All problems are supported. fp16 and bf16 elements are multiplied and added in float;
/// only the sum is rounded, once.
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
template <class T>
void run_as(const Conv2dProblem& conv, const Conv2dArrays& arrays) {
  const T* x = arrays.x;
  const T* weights = arrays.weights;
  const float* bias = arrays.bias;
  T* y = arrays.y;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const LayoutIndex4 x_at{conv.layout, conv.C, conv.H, conv.W};
  const LayoutIndex4 w_at{conv.layout, group_c, conv.R, conv.S};
  const LayoutIndex4 y_at{conv.layout, conv.K, conv.P, conv.Q};

  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      const int c0 = k / group_k * group_c;  // first input channel of k's group
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) {
          float sum = bias ? bias[k] : 0.0f;
          for (int c = 0; c < group_c; ++c) {
            for (int r = 0; r < conv.R; ++r) {
              const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
              if (h < 0 || h >= conv.H) continue;  // a row of zeros
              for (int s = 0; s < conv.S; ++s) {
                const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
                if (w < 0 || w >= conv.W) continue;
                sum += to_float(x[x_at(n, c0 + c, h, w)]) * to_float(weights[w_at(k, c, r, s)]);
              }
            }
          }
          y[y_at(n, k, p, q)] = rounded_to<T>(activated(conv.activation, sum));
        }
      }
    }
  }
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

}  // namespace

extern const Implementation<Conv2dArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
