/// @file direct.cpp
/// @brief Definition of conv2d_wgrad: one sum for each weight and each bias.
///
/// - After: cuda_naive/conv2d_wgrad/gather.cu, im2col_gemm.cpp, winograd_2x2.cpp
/// - On the GPU: cuda_naive/conv2d_wgrad/gather.cu
///
/// **The idea.** In the forward pass, weight w[k,c,r,s] is multiplied by one x for every output (n,
/// p, q) of its channel k. Its gradient is the sum over these outputs of dy times that x. The bias
/// is added to every output of its channel, so its gradient is the sum of dy. With stride 1 and no
/// padding:
///
///     for k  for c  for r  for s              which weight
///       for n  for p  for q                   which product of it
///         dw[k,c,r,s] += dy[n,k,p,q] * x[n, c, p + r, q + s]
///
/// **Expect.** Few outputs with long sums: the forward pass has N*K*P*Q sums of C*R*S products,
/// this one K*C*R*S sums of N*P*Q products. Rounding errors grow with the length of a sum, so FP32
/// is least accurate here.
/// **Costs.** All problems are supported. dw and db are float32 also for fp16 and bf16: in 16 bits,
/// small products added to a large sum would be lost.
#include "core/arithmetic.hpp"
#include "core/conv2d_gradients.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d_wgrad {
namespace {

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][R][S], db [K].
template <class T>
void run_as(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays) {
  const T* x = arrays.x;
  const T* dy = arrays.dy;
  float* dw = arrays.dw;
  float* db = arrays.db;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const LayoutIndex4 x_at{conv.layout, conv.C, conv.H, conv.W};
  const LayoutIndex4 w_at{conv.layout, group_c, conv.R, conv.S};
  const LayoutIndex4 y_at{conv.layout, conv.K, conv.P, conv.Q};

  for (int k = 0; k < conv.K; ++k) {
    const int c0 = k / group_k * group_c;  // first input channel of k's group
    for (int c = 0; c < group_c; ++c) {
      for (int r = 0; r < conv.R; ++r) {
        for (int s = 0; s < conv.S; ++s) {
          float sum = 0.0f;
          for (int n = 0; n < conv.N; ++n) {
            for (int p = 0; p < conv.P; ++p) {
              const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
              if (h < 0 || h >= conv.H) continue;  // a row of zeros
              for (int q = 0; q < conv.Q; ++q) {
                const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
                if (w < 0 || w >= conv.W) continue;
                sum += to_float(dy[y_at(n, k, p, q)]) * to_float(x[x_at(n, c0 + c, h, w)]);
              }
            }
          }
          dw[w_at(k, c, r, s)] = sum;
        }
      }
    }

    float sum = 0.0f;
    for (int n = 0; n < conv.N; ++n) {
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) sum += to_float(dy[y_at(n, k, p, q)]);
      }
    }
    db[k] = sum;
  }
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d_wgrad
