/// @file winograd_problem.hpp
/// @brief Which convolutions the winograd rungs take, and where they read x.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::conv2d {

/// Nothing, or why the matrices for filters of 3 x 3 do not compute it.
inline Declined why_no_winograd(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R != 3 || conv.S != 3) return "filters of 3x3 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  return {};
}

/// A pixel of x by its place in the padded image: 0 in the padding, and beyond it, where a tile is
/// larger than what is left of y.
inline float pixel(const Conv2dProblem& conv, const float* x, int n, int c, int padded_h,
                   int padded_w) {
  const int h = padded_h - conv.pad.top, w = padded_w - conv.pad.left;
  if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) return 0.0f;
  return x[Index4{conv.C, conv.H, conv.W}(n, c, h, w)];
}

}  // namespace convladder::cpu_reference::conv2d
