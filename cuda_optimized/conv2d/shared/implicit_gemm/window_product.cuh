/// @file window_product.cuh
/// @brief A convolution as sums over windows, which are a matrix product that gathers one of its
/// factors: the forward pass and, class by class of pixels, the input gradient.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// For each pixel (i, j) of rows x columns of each image, and for each filter m of each group,
///
///     out[m, i, j] = sum over c, r, s of weight[m, c, r, s]
///                      * source[c, first.h + i * stride.h + r * tap.h,
///                                  first.w + j * stride.w + s * tap.w]
///
/// with zeros outside of the source. What a kernel needs beside it, it derives: GatheredProduct for
/// the rungs in NCHW, GatheredGemm for mma, Windows for wgmma.
struct WindowProduct {
  int N, groups;            ///< images and groups of the convolution
  int channels, H, W;       ///< of the source: channels of a group, extents of an image
  int filters;              ///< of a group: channels of what is written
  int rows, columns;        ///< pixels of an image that are computed
  int R, S;                 ///< taps that are added up
  Step stride, first;       ///< where a pixel's window begins in the source; may be in its padding
  Step tap;                 ///< in the source, from a tap to the next one; may be negative
  Step out_first = {0, 0};  ///< where pixel (0, 0) lies in an image of what is written

  /// Pixels of an image.
  HOST_DEVICE int image_pixels() const { return rows * columns; }
  /// Pixels of all images, if they fit 31 bits.
  HOST_DEVICE int pixels() const { return N * rows * columns; }
  /// Channels of all groups that are written.
  HOST_DEVICE int out_channels() const { return groups * filters; }
};

/// The forward pass.
inline WindowProduct forward_product(const Conv2dProblem& conv) {
  return {.N = conv.N,
          .groups = conv.groups,
          .channels = conv.C / conv.groups,
          .H = conv.H,
          .W = conv.W,
          .filters = conv.K / conv.groups,
          .rows = conv.P,
          .columns = conv.Q,
          .R = conv.R,
          .S = conv.S,
          .stride = conv.stride,
          .first = {-conv.pad.top, -conv.pad.left},
          .tap = conv.dilation};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
