/// @file im2row.cpp
/// @brief im2row: with channels innermost (NHWC) each window becomes a row.
///
/// - Before: im2col.cpp
///
/// **The idea.** In the layout NHWC the channels of a pixel are adjacent. Windows become rows: a
/// tap of a window is one pixel, C adjacent elements, which are copied together. The elements are
/// those of im2col, in the order window, tap, channel.
///
///     x (2 channels, 3 x 3)    kernel 2 x 2      a row for each window
///       aA bB cC                                 window 0:  aA bB dD eE
///       dD eE fF               4 windows         window 1:  bB cC eE fF
///       gG hH iI                                 window 2:  dD eE gG hH ...
///
/// With dilation 1, the S taps of a row are contiguous, too: S * C floats.
///
/// **Expect.** As many bytes as im2col, copied C floats at a time instead of one.
/// **Costs.** Supports layout NHWC and float32 only.
#include <algorithm>

#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::im2col {
namespace {

/// The position along the axis that this tap of this window reads; -1 in the padding.
int position(const WindowAxis& axis, int window, int tap) {
  const int at = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return at >= 0 && at < axis.size ? at : -1;
}

/// The channels of a pixel, or zeros if it is null.
void copy_channels(const float* pixel, int C, bool add, float* to) {
  for (int c = 0; c < C; ++c) {
    const float value = pixel ? pixel[c] : 0.0f;
    to[c] = add ? to[c] + value : value;
  }
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nhwc) return "layout nhwc only";
  if (problem.dtype != DType::f32) return "float32 only";
  return {};
}

/// x [N][D][H][W][C] to col [N][windows][taps][C].
void run(const Im2colProblem& problem, const Im2colArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const float* x = arrays.x;
  float* to = arrays.col;
  const bool add = problem.request == Request::add;

  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const Index4 pixel_at{depth.size, height.size, width.size};
  for (int n = 0; n < problem.N; ++n) {
    for (int o = 0; o < depth.out; ++o) {
      for (int p = 0; p < height.out; ++p) {
        for (int q = 0; q < width.out; ++q) {
          for (int t = 0; t < depth.kernel; ++t) {
            const int d = position(depth, o, t);
            for (int r = 0; r < height.kernel; ++r) {
              const int h = position(height, p, r);
              for (int s = 0; s < width.kernel; ++s, to += problem.C) {
                const int w = position(width, q, s);
                const bool inside = d >= 0 && h >= 0 && w >= 0;
                const float* pixel = inside ? x + pixel_at(n, d, h, w) * problem.C : nullptr;
                copy_channels(pixel, problem.C, add, to);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Im2colArrays> im2row = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::im2col
