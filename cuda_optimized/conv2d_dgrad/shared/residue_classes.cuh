/// @file residue_classes.cuh
/// @brief The input gradient as forward convolutions of dy, one for each residue class of pixels:
/// the classes, stores to every stride-th pixel of dx, and the classes of one grid with their
/// packed weights. conv2d_dgrad/implicit_gemm/{residue_classes,cp_async}.cu explain them.
#pragma once

#include <algorithm>
#include <numeric>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

/// One residue class along one axis: the positions `residue`, residue + stride, ... of dx, and the
/// taps that meet them. Position i of the class meets its tap t at position start + i + t * move of
/// dy.
struct ClassAxis {
  int positions;            ///< of dx that are in the class
  int taps;                 ///< of the filter that meet them; none is legal
  int first_tap, tap_step;  ///< which they are
  int start,                ///< where position 0 meets tap 0, in dy or its padding; 0 without taps
      move;  ///< in dy, from a tap to the next one: -dilation / gcd(stride, dilation)

  /// @param extent of dx along this axis; `taps_`, `pad`, `stride` and `dilation` are of it, too
  ClassAxis(int residue, int extent, int taps_, int pad, int stride, int dilation) {
    positions = ceil_div(extent - residue, stride);
    // Output p reads position h as tap r where p * stride = h + pad - r * dilation: the right side
    // must be a multiple of the stride. If tap r is one, the next is tap_step later.
    const int common = std::gcd(stride, dilation);
    tap_step = stride / common;
    first_tap = 0;
    const auto distance = [=](int tap) {
      return std::int64_t{residue} + pad - std::int64_t{tap} * dilation;
    };
    while (first_tap < tap_step && distance(first_tap) % stride != 0) ++first_tap;
    const bool some = first_tap < tap_step && first_tap < taps_;
    if (!some) first_tap = 0;
    taps = some ? ceil_div(taps_ - first_tap, tap_step) : 0;
    start = some ? static_cast<int>(distance(first_tap) / stride) : 0;
    move = -dilation / common;
  }
};

/// The class of the pixels (residue_h + i * stride.h, residue_w + j * stride.w) of dx.
struct ResidueClass {
  ClassAxis h, w;  ///< down, across

  /// Of the class that begins at pixel (residue_h, residue_w) of dx.
  ResidueClass(const Conv2dProblem& conv, int residue_h, int residue_w)
      : h(residue_h, conv.H, conv.R, conv.pad.top, conv.stride.h, conv.dilation.h),
        w(residue_w, conv.W, conv.S, conv.pad.left, conv.stride.w, conv.dilation.w) {}

  /// The class as a convolution of dy with stride 1.
  conv2d::WindowProduct product(const Conv2dProblem& conv, int residue_h, int residue_w) const {
    return {.N = conv.N,
            .groups = conv.groups,
            .channels = conv.K / conv.groups,
            .H = conv.P,
            .W = conv.Q,
            .filters = conv.C / conv.groups,
            .rows = h.positions,
            .columns = w.positions,
            .R = h.taps,
            .S = w.taps,
            .stride = {1, 1},
            .first = {h.start, w.start},
            .tap = {h.move, w.move},
            .out_first = {residue_h, residue_w}};
  }
};

/// Calls body(class, product) for all residue classes that have pixels.
template <class Body>
void for_each_class(const Conv2dProblem& conv, const Body& body) {
  for (int a = 0; a < std::min(conv.stride.h, conv.H); ++a) {
    for (int b = 0; b < std::min(conv.stride.w, conv.W); ++b) {
      const ResidueClass residue(conv, a, b);
      body(residue, residue.product(conv, a, b));
    }
  }
}

/// The classes in words, for a rung's choice. @param at_once classes of one launch
inline std::string classes_in_words(const Conv2dProblem& conv, std::int64_t at_once) {
  std::int64_t count = 0;
  bool without_taps = false;
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct&) {
    ++count;
    without_taps = without_taps || residue.h.taps == 0 || residue.w.taps == 0;
  });
  return text(count == 1 ? "one class" : "several classes",
              count > at_once ? ", several launches" : "",
              without_taps ? ", some without taps" : "");
}

/// The reason not to support a problem: it is not fp32 in NCHW, its sizes exceed 31 bits, or nearly
/// all products would be of padding.
inline Declined why_no_product(const Conv2dProblem& conv) {
  constexpr std::int64_t kMost = 0x7fff0000;  // a tile may reach beyond the last one
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (std::int64_t{std::max(1, conv.N)} * conv.H * conv.W > kMost) {
    return "an input channel of all images has 2^31 pixels or more";
  }
  // A filter almost as large as the image: nearly all taps of a pixel lie in dy's padding.
  constexpr double kMostPadding = 64;
  double all = 0.0;
  for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& product) {
    all += 1.0 * product.image_pixels() * product.R * product.S;
  });
  if (all > kMostPadding * conv.P * conv.Q * conv.R * conv.S) {
    return text("more than ", kMostPadding - 1, " of ", kMostPadding,
                " products would be of padding");
  }
  return conv2d::why_no_padded_product(conv.C / conv.groups, conv.K / conv.groups,
                                       std::int64_t{conv.R} * conv.S);
}

/// Whether there is a single class, and four pixels of a tile are four neighbours in dx, aligned to
/// 16 bytes if dx is.
inline bool pixels_in_fours(const Conv2dProblem& conv) {
  return conv.stride.h == 1 && conv.stride.w == 1 && std::int64_t{conv.H} * conv.W % 4 == 0;
}

/// Stores accumulators to dx [images][channels][height][width], at the pixels of a residue class.
struct StoreClass {
  float* dx;          ///< [images][channels][height][width]
  int height, width;  ///< of an image of dx
  Step stride;        ///< in dx, from a pixel of the class to the next one
  bool fours;         ///< four pixels of a tile are four neighbours in dx, aligned to 16 bytes

  /// To dx_, the input gradient of that problem.
  StoreClass(const Conv2dProblem& conv, float* dx_)
      : dx(dx_), height(conv.H), width(conv.W), stride(conv.stride),
        fours(pixels_in_fours(conv) &&
              reinterpret_cast<std::uintptr_t>(dx_) % sizeof(float4) == 0) {}

  /// Stores a block's accumulators, except those beyond the last channel or pixel.
  /// @param shared kThreads * kThreadN floats of shared memory, used unless `fours`
  template <class T>
  __device__ void store(const conv2d::GatheredProduct& product, const conv2d::BlockPlace& place,
                        const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                        float* shared) const {
    const std::int64_t plane = std::int64_t{height} * width;
    const std::int64_t first = std::int64_t{place.group} * product.filters + place.m;
    if (fours) {
      tile.for_each_four(sums, [&](int m, int n, float4 four) {
        const int pixel = place.n + n;
        if (place.m + m >= product.filters || pixel >= product.pixels()) return;
        const int image = product.by_image.quotient(pixel);
        float* const to = dx + (std::int64_t{image} * product.out_channels() + first + m) * plane;
        reinterpret_cast<float4*>(to)[product.by_image.remainder(pixel, image) / 4] = four;
      });
      return;
    }
    for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      const int pixel = place.n + n;
      if (place.m + m >= product.filters || pixel >= product.pixels()) return;
      const int image = product.by_image.quotient(pixel);
      const int in_image = product.by_image.remainder(pixel, image);
      const int row = product.by_row.quotient(in_image);
      const int h = product.out_first.h + row * stride.h;
      const int w = product.out_first.w + product.by_row.remainder(in_image, row) * stride.w;
      dx[(std::int64_t{image} * product.out_channels() + first + m) * plane +
         std::int64_t{h} * width + w] = sum;
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
