/// @file reordered.cpp
/// @brief Loop interchange: the innermost loop runs along contiguous memory, without a branch.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_naive/conv2d/direct.cu, where the threads of a warp replace the innermost
///   loop
///
/// **The idea.** The order of the seven loops is free. With q innermost, one weight is multiplied
/// by a whole row: both rows are contiguous, and the additions are independent, so the compiler
/// vectorises the loop.
///
///     y[n,k,p, q_begin .. q_end)  +=  w[k,c,r,s] * x[n,c,h, w_begin .. )
///
/// Which q read a value and not padding depends on s only. The range is therefore computed before
/// the loop over rows, and the innermost loop has no branch:
///
///     0 <= q * stride - pad + s * dilation < W
///
/// **Expect.** Several times the speed of direct.cpp, although y is read and written once per
/// weight.
/// **Costs.** y is read and written C/groups * R * S times: large images are limited by memory
/// bandwidth. Supports layout NCHW and float32 only.
#include <algorithm>

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

/// The q in [begin, end) for which 0 <= q * stride + offset < W; none: begin >= end.
struct Range {
  int begin, end;
};
Range valid_range(int Q, int stride, int offset, int W) {
  const int begin = offset >= 0 ? 0 : ceil_div(-offset, stride);
  const int end = offset >= W ? 0 : (W - 1 - offset) / stride + 1;
  return {begin, std::min(end, Q)};
}

/// y[i] += weight * x[i * stride] for `count` elements.
void add_scaled_row(const float* x, int stride, float weight, float* y, int count) {
  if (stride == 1) {  // separate, because only this form benefits from vector loads
    for (int i = 0; i < count; ++i) y[i] += weight * x[i];
  } else {
    for (int i = 0; i < count; ++i) y[i] += weight * x[std::int64_t{i} * stride];
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const float* x = arrays.x;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  float* y = arrays.y;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};

  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      const int c0 = k / group_k * group_c;  // first input channel of k's group
      float* plane = y + y_at(n, k, 0, 0);
      std::fill_n(plane, std::int64_t{conv.P} * conv.Q, bias ? bias[k] : 0.0f);
      for (int c = 0; c < group_c; ++c) {
        for (int r = 0; r < conv.R; ++r) {
          for (int s = 0; s < conv.S; ++s) {
            const float weight = weights[w_at(k, c, r, s)];
            const int offset = s * conv.dilation.w - conv.pad.left;  // w = q * stride + offset
            const Range q = valid_range(conv.Q, conv.stride.w, offset, conv.W);
            if (q.begin >= q.end) continue;  // this tap reads padding only
            for (int p = 0; p < conv.P; ++p) {
              const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
              if (h < 0 || h >= conv.H) continue;  // a row of zeros
              add_scaled_row(x + x_at(n, c0 + c, h, q.begin * conv.stride.w + offset),
                             conv.stride.w, weight, y + y_at(n, k, p, q.begin), q.end - q.begin);
            }
          }
        }
      }
      // The sums are complete only here, so the activation is a separate pass over the plane.
      for (std::int64_t i = 0; i < std::int64_t{conv.P} * conv.Q; ++i) {
        plane[i] = activated(conv.activation, plane[i]);
      }
    }
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv.stride.w == 1 ? "neighbouring inputs" : "strided inputs";
}

}  // namespace

extern const Implementation<Conv2dArrays> reordered = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::conv2d
