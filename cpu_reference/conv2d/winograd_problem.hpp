/// @file winograd_problem.hpp
/// @brief The convolutions that the Winograd rungs support, and their access to x.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d {

/// Empty, or the reason why the matrices for 3 x 3 filters do not apply.
inline Declined why_no_winograd(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R != 3 || conv.S != 3) return "filters of 3x3 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  return {};
}

/// A pixel of x by its position in the padded image: 0 in the padding and beyond it, where a tile
/// exceeds y.
inline float pixel(const Conv2dProblem& conv, const float* x, int n, int c, int padded_h,
                   int padded_w) {
  const int h = padded_h - conv.pad.top, w = padded_w - conv.pad.left;
  if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) return 0.0f;
  return x[Index4{conv.C, conv.H, conv.W}(n, c, h, w)];
}

}  // namespace convladder::cpu_reference::conv2d
