/// @file gathered_gemm.cuh
/// @brief An NHWC convolution as a GEMM for `mma.sync`, forward or backward: the pixel of a row,
/// the tap and channel of a step along k, and the steps that do not lie in the padding.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// out[pixel][f] = bias[f] + sum over taps (r, s) and channels c of
///     source[row(pixel) + r * tap.h][column(pixel) + s * tap.w][c] * weight(r, s, c, f)
/// for pixels of a grid in each image, and for each group, activated. The sums' index k runs over
/// r, s and c, c fastest.
struct GatheredGemm {
  int N;                          ///< images
  int rows, columns;              ///< pixels of an image
  Step first, stride;             ///< source row: first.h + row of the pixel * stride.h
  int H, W;                       ///< of the source; zeros around it
  int channels, source_channels;  ///< of a group, of all groups
  int R, S;                       ///< taps
  Step tap;                       ///< from a tap to the next, in the source; may be negative
  int filters, out_channels;      ///< of a group, of all groups
  int out_H, out_W;               ///< of the output
  Step out_first, out_stride;     ///< output row: out_first.h + row of the pixel * out_stride.h
  int groups;                     ///< Filter f of group g is output channel g * filters + f.
  std::int64_t weights_group;     ///< from a group's first weight to the next one's
  std::int64_t weights_first;     ///< of a group: that of tap (0, 0), channel 0, filter 0
  std::int64_t weights_r, weights_s, weights_f;  ///< steps along each axis; channels are contiguous
  FastDivision by_channels, by_taps_across;      ///< by `channels`, by S
  FastDivision by_columns, by_rows;              ///< by `columns`, by `rows`
  Activation activation = Activation::none;      ///< of the sums with their bias

  /// The pixels of all images: the rows of the product.
  std::int64_t pixels() const { return std::int64_t{N} * rows * columns; }
  /// Whether FourAtATime can take it: a row's taps fit 31 bits, and offsets from the first image of
  /// a tile of `tile_pixels`, as well as those in a group's weights, fit an int.
  bool fits_ints(int tile_pixels) const;
};

inline bool GatheredGemm::fits_ints(int tile_pixels) const {
  const std::int64_t images =
      std::min<std::int64_t>(N, 2 + tile_pixels / (std::int64_t{rows} * columns));
  const auto reach = [](std::int64_t from, std::int64_t pixels, int step, int size, int taps,
                        int tap_step) {
    return std::abs(from) + pixels * step + size + std::int64_t{taps} * std::abs(tap_step);
  };
  // In double, because products of the sizes of an absurd padding may not even fit 64 bits.
  const auto lines = static_cast<double>(images * H + reach(first.h, rows, stride.h, H, R, tap.h));
  const auto across = static_cast<double>(reach(first.w, columns, stride.w, W, S, tap.w));
  const auto weights = static_cast<double>(filters + tile_pixels) * static_cast<double>(weights_f) +
                       static_cast<double>(R) * static_cast<double>(weights_r) +
                       static_cast<double>(S) * static_cast<double>(weights_s);
  constexpr double kMaxInt = 2147483647;
  return R + S <= 31 && (lines + 1) * (across + W) * source_channels < kMaxInt && weights < kMaxInt;
}

/// Where the weights of a product lie: GatheredGemm's fields of these names.
struct WeightSteps {
  std::int64_t group, first, r, s, f;  ///< in floats
};

/// The product as the kernels see it. Its output images are rows x columns, where pixels follow one
/// another.
inline GatheredGemm gathered_gemm(const WindowProduct& product, const WeightSteps& weights) {
  const int taps_across = product.R > 0 ? product.S : 0;
  return {.N = product.N,
          .rows = product.rows,
          .columns = product.columns,
          .first = product.first,
          .stride = product.stride,
          .H = product.H,
          .W = product.W,
          .channels = product.channels,
          .source_channels = product.groups * product.channels,
          .R = product.R,
          .S = taps_across,
          .tap = product.tap,
          .filters = product.filters,
          .out_channels = product.out_channels(),
          .out_H = product.rows,
          .out_W = product.columns,
          .out_first = product.out_first,
          .out_stride = {1, 1},
          .groups = product.groups,
          .weights_group = weights.group,
          .weights_first = weights.first,
          .weights_r = weights.r,
          .weights_s = weights.s,
          .weights_f = weights.f,
          .by_channels = FastDivision(product.channels),
          .by_taps_across = FastDivision(std::max(taps_across, 1)),
          .by_columns = FastDivision(product.columns),
          .by_rows = FastDivision(product.rows)};
}

/// The largest depth of the GEMM: an int counts it, with a margin of some stages.
constexpr std::int64_t kMaxDepth = 2147483647 - 256;

/// Whether channels are copied in fours, if the source is aligned to 16 bytes.
inline bool channels_in_fours(const GatheredGemm& product) { return product.channels % 4 == 0; }

/// The reason not to support a problem whose sums have `products` products in TF32.
inline Declined why_not_gathered(const Conv2dProblem& conv, std::int64_t products) {
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (const Declined why = why_not("sm_80")) return why;
  if (products > kMaxDepth) return "sums of 2^31 products and more";
  return {};
}

/// Where a row of the product lies among the pixels.
struct Place {
  std::int64_t n;   ///< image
  int row, column;  ///< pixel
};

/// The place of pixel number `index`. The fast divisions take what fits an int.
__device__ inline Place place_of(const GatheredGemm& product, std::int64_t index) {
  if (index <= 2147483647) {
    const auto pixel = static_cast<int>(index);
    const int line = product.by_columns.quotient(pixel), n = product.by_rows.quotient(line);
    return {n, product.by_rows.remainder(line, n), product.by_columns.remainder(pixel, line)};
  }
  const std::int64_t line = index / product.columns, n = line / product.rows;
  return {n, static_cast<int>(line - n * product.rows),
          static_cast<int>(index - line * product.columns)};
}

/// A pixel of the output, a row of the product.
struct Pixel {
  std::int64_t n;    ///< its image
  int h, w;          ///< where its window begins in the source: it may be in the padding
  std::int64_t out;  ///< offset of its first output channel
};

/// Pixel number `index`, less than product.pixels().
__device__ inline Pixel pixel_at(const GatheredGemm& product, std::int64_t index) {
  const Place at = place_of(product, index);
  const int out_row = product.out_first.h + at.row * product.out_stride.h;
  const int out_column = product.out_first.w + at.column * product.out_stride.w;
  return {at.n, product.first.h + at.row * product.stride.h,
          product.first.w + at.column * product.stride.w,
          ((at.n * product.out_H + out_row) * product.out_W + out_column) * product.out_channels};
}

/// What a step k of the sums stands for.
struct Tap {
  int r, s, c;  ///< Row and column in the filter; channel of the group.
};

/// The tap and channel of step k.
__device__ inline Tap tap_at(const GatheredGemm& product, int k) {
  const int tap = product.by_channels.quotient(k), r = product.by_taps_across.quotient(tap);
  return {r, product.by_taps_across.remainder(tap, r), product.by_channels.remainder(k, tap)};
}

/// Steps of k, from `begin` up to `end`.
struct Depth {
  int begin, end;  ///< indices k of the sums
};

/// The k of those filter rows that meet the source for any of the `count` pixels from m0 on; the
/// others lie in the padding, above or below. Filters almost as large as the image have many.
__device__ inline Depth depth_of(const GatheredGemm& product, std::int64_t m0, int count) {
  const int row_depth = product.S * product.channels;
  const Place from = place_of(product, m0), to = place_of(product, m0 + count - 1);
  const auto source_row = [&](int of) {
    return product.first.h + std::int64_t{of} * product.stride.h;
  };
  const std::int64_t top = source_row(from.n == to.n ? from.row : 0);
  const std::int64_t bottom = source_row(from.n == to.n ? to.row : product.rows - 1);
  const int step = product.tap.h;  // never 0; r * step must lie in [-bottom, H - 1 - top]
  const std::int64_t reach = std::int64_t{product.R - 1} * step;
  if (top >= 0 && top + reach >= 0 && bottom < product.H && bottom + reach < product.H) {
    return {0, product.R * row_depth};  // no division, which takes some hundred instructions
  }
  const std::int64_t r_begin =
      step > 0 ? -floor_div(bottom, step) : -floor_div(product.H - 1 - top, -step);
  const std::int64_t r_end =
      1 + (step > 0 ? floor_div(product.H - 1 - top, step) : floor_div(bottom, -step));
  const int begin = static_cast<int>(r_begin < 0 ? 0 : r_begin < product.R ? r_begin : product.R);
  const int end = static_cast<int>(r_end < begin ? begin : r_end < product.R ? r_end : product.R);
  return {begin * row_depth, end * row_depth};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
