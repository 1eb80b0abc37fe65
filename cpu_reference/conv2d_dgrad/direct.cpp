/// @file direct.cpp
/// @brief Definition of conv2d_dgrad: the forward loops, with each product added to dx.
///
/// - After: cuda_naive/conv2d_dgrad/gather.cu, gemm_col2im.cpp
/// - On the GPU: cuda_naive/conv2d_dgrad/gather.cu
///
/// **The idea.** In the forward pass, each product x * w is added to one y. If dy is the derivative
/// of the loss with respect to that y, then dy * w is its contribution to the derivative with
/// respect to that x. The same seven loops visit the same (x, w, y) triples, and each adds its dy *
/// w to its dx. The products are scattered: p and q determine h and w directly, and no equation has
/// to be solved.
///
///     forward:   y[n,k,p,q]  += x[n,c,h,w]   * w[k,c,r,s]      h = p * stride - pad + r * dilation
///     here:      dx[n,c,h,w] += dy[n,k,p,q]  * w[k,c,r,s]      w likewise
///
/// **Expect.** As many multiply-adds as in the forward pass. A pixel outside of all windows remains
/// 0.
/// **Costs.** All problems are supported. Sums are accumulated in a separate float array, so that
/// fp16 and bf16 results are rounded once.
#include <vector>

#include "core/arithmetic.hpp"
#include "core/conv2d_gradients.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d_dgrad {
namespace {

/// dy [N][K][P][Q], weights [K][C/groups][R][S], dx [N][C][H][W].
template <class T>
void run_as(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays) {
  const T* dy = arrays.dy;
  const T* weights = arrays.weights;
  T* dx = arrays.dx;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const LayoutIndex4 x_at{conv.layout, conv.C, conv.H, conv.W};
  const LayoutIndex4 w_at{conv.layout, group_c, conv.R, conv.S};
  const LayoutIndex4 y_at{conv.layout, conv.K, conv.P, conv.Q};

  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  std::vector<float> sums(static_cast<std::size_t>(size));
  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      const int c0 = k / group_k * group_c;  // first input channel of k's group
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) {
          const float gradient = to_float(dy[y_at(n, k, p, q)]);
          for (int c = 0; c < group_c; ++c) {
            for (int r = 0; r < conv.R; ++r) {
              const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
              if (h < 0 || h >= conv.H) continue;  // the padding has no gradient
              for (int s = 0; s < conv.S; ++s) {
                const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
                if (w < 0 || w >= conv.W) continue;
                sums[static_cast<std::size_t>(x_at(n, c0 + c, h, w))] +=
                    gradient * to_float(weights[w_at(k, c, r, s)]);
              }
            }
          }
        }
      }
    }
  }
  for (std::int64_t i = 0; i < size; ++i) {
    dx[i] = rounded_to<T>(sums[static_cast<std::size_t>(i)]);
  }
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d_dgrad
