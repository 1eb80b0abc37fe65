/// @file gathered_classes.cuh
/// @brief The input gradient in NHWC as products for the tensor cores: one for each class of pixels
/// that the same taps reach.
#pragma once

#include <algorithm>
#include <numeric>

#include "cuda_optimized/conv2d/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/gathered_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::GatheredGemm;
using conv2d::GatheredPlan;

/// The pixels first, first + stride, ... of dx along one axis, and their taps.
struct PixelClass {
  int first, count;     ///< `count` pixels
  int tap_first, taps;  ///< tap_first, tap_first + tap_step, ...: `taps` taps
  int tap_step;         ///< from a tap of the class to the next one
  int source_first;     ///< row of dy that the first pixel's first tap reads; may be negative
  int source_step;      ///< from a tap's row to the next one's
};

/// The class that begins at pixel `first` of an axis.
inline PixelClass class_of(int first, int size, int pad, int stride, int dilation, int taps) {
  PixelClass found{};
  found.first = first;
  found.count = ceil_div(size - first, stride);
  const std::int64_t residue = (std::int64_t{first} + pad) % stride;
  // r * dilation % stride repeats every stride / gcd taps, and takes each value once in between.
  const int gcd = std::gcd(stride, dilation);
  found.tap_step = stride / gcd;
  found.source_step = -(dilation / gcd);
  int r = 0;
  while (r < taps && r < found.tap_step && std::int64_t{r} * dilation % stride != residue) ++r;
  if (r < taps && r < found.tap_step) {
    found.tap_first = r;
    found.taps = ceil_div(taps - r, found.tap_step);
    found.source_first =
        static_cast<int>(floor_div(std::int64_t{first} + pad - std::int64_t{r} * dilation, stride));
  }
  return found;
}

/// The product of a class. Its weights are w as [groups][R][S][C/groups][K/groups].
inline GatheredGemm product_of(const Conv2dProblem& conv, const PixelClass& h,
                               const PixelClass& w) {
  const int channels = conv.K / conv.groups, filters = conv.C / conv.groups;
  const std::int64_t weights_s = std::int64_t{filters} * channels, weights_r = conv.S * weights_s;
  const int taps_across = h.taps > 0 ? w.taps : 0;
  return {.N = conv.N,
          .rows = h.count,
          .columns = w.count,
          .first = {h.source_first, w.source_first},
          .stride = {1, 1},
          .H = conv.P,
          .W = conv.Q,
          .channels = channels,
          .source_channels = conv.K,
          .R = h.taps,
          .S = taps_across,
          .tap = {h.source_step, w.source_step},
          .filters = filters,
          .out_channels = conv.C,
          .out_H = conv.H,
          .out_W = conv.W,
          .out_first = {h.first, w.first},
          .out_stride = conv.stride,
          .groups = conv.groups,
          .weights_group = conv.R * weights_r,
          .weights_first = h.tap_first * weights_r + w.tap_first * weights_s,
          .weights_r = h.tap_step * weights_r,
          .weights_s = w.tap_step * weights_s,
          .weights_f = channels,
          .by_channels = FastDivision(channels),
          .by_taps_across = FastDivision(std::max(taps_across, 1)),
          .by_columns = FastDivision(w.count),
          .by_rows = FastDivision(h.count)};
}

/// Calls body(product, plan) for each class of pixels.
template <class Body>
void for_each_pixel_class(const Conv2dProblem& conv, const Body& body) {
  const int classes_h = std::min(conv.stride.h, conv.H),
            classes_w = std::min(conv.stride.w, conv.W);
  for (int i = 0; i < classes_h; ++i) {
    const PixelClass h = class_of(i, conv.H, conv.pad.top, conv.stride.h, conv.dilation.h, conv.R);
    for (int j = 0; j < classes_w; ++j) {
      const PixelClass w =
          class_of(j, conv.W, conv.pad.left, conv.stride.w, conv.dilation.w, conv.S);
      const GatheredGemm product = product_of(conv, h, w);
      // Parts are added up for the whole of dx.
      body(product, conv2d::plan_gathered(product, classes_h * classes_w == 1));
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
