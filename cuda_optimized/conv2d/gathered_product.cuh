/// @file gathered_product.cuh
/// @brief A convolution as a matrix product that gathers one of its factors: its sizes. The forward
/// pass and the input gradient share it.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A convolution as a kernel sees it, forward or backward. For each pixel (i, j) of rows x columns
/// of each image, and for each channel m of each group that is written,
///
///     out[m, i, j] = sum over c, r, s of weight[m, c, r, s]
///                      * in[c, start_h + i * step_h + r * tap_h, start_w + j * step_w + s * tap_w]
///
/// with zeros outside of `in`.
struct GatheredProduct {
  int images, groups;                    ///< of the convolution
  int group_c, in_h, in_w;               ///< of what is read: channels of a group, extents
  int group_m;                           ///< channels of a group of what is written
  int rows, columns;                     ///< pixels of an image that are computed
  int taps_h, taps_w;                    ///< taps that are added up, r and s
  int step_h, step_w, start_h, start_w;  ///< where a pixel's window begins
  int tap_h, tap_w;                      ///< from a tap to the next one; may be negative
  int out_row = 0, out_column = 0;       ///< of pixel (0, 0) in what is written

  // Filled in by planned():
  bool table = false;              ///< steps along k are (c, r, s); otherwise (r, s, c)
  int m_tiles = 0, n_tiles = 0;    ///< blocks along the channels, and along the pixels
  int steps = 0;                   ///< of T::kBlockK products each; 0 where there are no taps
  int k_rows = 0;                  ///< steps * T::kBlockK
  int padded_m = 0, padded_c = 0;  ///< group_m and group_c, rounded up to whole tiles
  FastDivision by_image = {};      ///< by rows * columns
  FastDivision by_row = {};        ///< by columns

  /// Pixels of an image.
  HOST_DEVICE int image_pixels() const { return rows * columns; }
  /// Pixels of all images.
  HOST_DEVICE int pixels() const { return images * rows * columns; }
  /// Channels of all groups that are written.
  HOST_DEVICE int channels() const { return groups * group_m; }
  /// Floats of the packed weights.
  HOST_DEVICE std::int64_t packed_floats() const {
    return std::int64_t{groups} * k_rows * padded_m;
  }
};

/// The forward pass as a gathered product.
inline GatheredProduct forward_product(const Conv2dProblem& conv) {
  return {.images = conv.N,
          .groups = conv.groups,
          .group_c = conv.C / conv.groups,
          .in_h = conv.H,
          .in_w = conv.W,
          .group_m = conv.K / conv.groups,
          .rows = conv.P,
          .columns = conv.Q,
          .taps_h = conv.R,
          .taps_w = conv.S,
          .step_h = conv.stride.h,
          .step_w = conv.stride.w,
          .start_h = -conv.pad.top,
          .start_w = -conv.pad.left,
          .tap_h = conv.dilation.h,
          .tap_w = conv.dilation.w};
}

/// Why a problem whose rows of k are rounded up to whole tiles does not fit 31 bits.
inline Declined why_no_padded_product(std::int64_t group_c, std::int64_t taps) {
  if ((group_c + 31) * taps > 0x7fffffff) {
    return "a filter, its channels rounded up to 32, has 2^31 weights or more";
  }
  return {};
}

/// The product with its tiles, for blocks of T::kBlockM x T::kBlockN sums.
/// @param table whether steps along k are (c, r, s)
template <class T>
GatheredProduct planned(GatheredProduct product, bool table) {
  const int taps = product.taps_h * product.taps_w;
  product.table = table;
  product.m_tiles = ceil_div(product.group_m, T::kBlockM);
  product.n_tiles = ceil_div(product.pixels(), T::kBlockN);
  product.padded_m = product.m_tiles * T::kBlockM;
  product.padded_c = ceil_div(product.group_c, T::kBlockK) * T::kBlockK;
  product.steps =
      table ? ceil_div(product.group_c * taps, T::kBlockK) : product.padded_c / T::kBlockK * taps;
  product.k_rows = product.steps * T::kBlockK;
  product.by_image = FastDivision(std::max(1, product.image_pixels()));
  product.by_row = FastDivision(std::max(1, product.columns));
  return product;
}

/// Where the sums of a block belong.
struct BlockPlace {
  int m, n;   ///< the first channel, counted within the group, and the first pixel
  int group;  ///< which group of channels
  int split;  ///< which part of the steps along k
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
