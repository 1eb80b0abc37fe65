/// @file windows.cuh
/// @brief What the wgmma rungs compute: sums over windows, which are a forward pass or, for each
/// residue class of pixels, an input gradient. The description, its limits, and the plan.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kWgmmaStep;
using gemm::WgmmaItem;
using gemm::WgmmaWork;

/// @cond Doxygen looks for gemm among the classes.
using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Two blocks per SM, for small problems.
using Tall = gemm::WgmmaShape<256, 64, 5, 1>;     ///< Many pixels, few filters.
using Medium = gemm::WgmmaShape<128, 128, 6, 1>;  ///< Where Large would have too few tiles.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.
/// @endcond

/// out[n, p, q, k] = bias[k] + sum over r, s, c of
///   source[n, first + stride * p + dilation * r, ... q ... s, group(k) * group_c + c] *
///   weights[k][r][s][c]
/// for p < P, q < Q, with zeros outside the source. The pixel (p, q) lies at (out_first +
/// out_stride * p, ...) of an output image of out_H x out_W. The activation follows the bias.
struct Windows {
  Layout layout;      ///< of source and out
  int N,              ///< images
      P,              ///< rows of windows in an image
      Q,              ///< windows in a row
      K,              ///< filters, the channels of out
      groups;         ///< of channels; they divide K
  int H, W, group_c;  ///< of source; it has groups * group_c channels
  int R, S;           ///< of weights, which are [K][R][S][group_c] (nchw: [K][group_c][R][S])
  Step first,         ///< where the window (0, 0) begins in the source; negative in the padding
      stride,         ///< pixels of the source from one window to the next
      dilation;       ///< pixels of the source from one tap to the next
  int out_H, out_W;   ///< of the images of out, in pixels
  Step out_first,     ///< where the pixel (0, 0) lies in an image of out
      out_stride;     ///< pixels of that image from one (p, q) to the next
  Activation activation = Activation::none;  ///< after the bias
  TileMap map = TileMap::row_major;          ///< of tiles; row_major: the kernel's own order

  /// Pixels of all images: the rows of the product.
  HOST_DEVICE std::int64_t pixels() const { return std::int64_t{N} * P * Q; }
  /// Filters of a group.
  HOST_DEVICE int group_k() const { return K / groups; }
  /// Chunks of kWgmmaStep channels in a tap; the last one may be partial.
  HOST_DEVICE int chunks() const { return ceil_div(group_c, kWgmmaStep); }
  /// From one channel of out to the next.
  HOST_DEVICE std::int64_t plane() const {
    return layout == Layout::nchw ? std::int64_t{out_H} * out_W : 1;
  }
  /// Elements of out, including pixels that these windows do not write.
  std::int64_t out_size() const { return std::int64_t{N} * out_H * out_W * K; }
};

/// The windows of a forward pass.
inline Windows forward_windows(const Conv2dProblem& conv) {
  return {.layout = conv.layout,
          .N = conv.N,
          .P = conv.P,
          .Q = conv.Q,
          .K = conv.K,
          .groups = conv.groups,
          .H = conv.H,
          .W = conv.W,
          .group_c = conv.C / conv.groups,
          .R = conv.R,
          .S = conv.S,
          .first = {-conv.pad.top, -conv.pad.left},
          .stride = conv.stride,
          .dilation = conv.dilation,
          .out_H = conv.P,
          .out_W = conv.Q,
          .out_first = {0, 0},
          .out_stride = {1, 1},
          .activation = conv.activation,
          .map = conv.map};
}

/// Which tap of a filter is tap (r, s) of the windows. In an input gradient the order is reversed,
/// and a residue class has some of the taps.
struct WindowTaps {
  int last_r,  ///< row of the filter's tap that the windows' tap (0, 0) is
      step_r,  ///< rows up the filter to the windows' next row of taps
      last_s,  ///< its column
      step_s;  ///< columns likewise
  int S;       ///< taps in a row of the filter

  /// The filter's tap, r * S + s.
  HOST_DEVICE int at(int r, int s) const { return (last_r - r * step_r) * S + last_s - s * step_s; }
};

/// A sum over windows in half precision. Two neighbouring channels are a *word*, which is as long
/// as a float: tiles, steps and the fields of TMA are those of TF32, with channels in words.
struct HalfProduct {
  DType dtype;              ///< f16 or bf16
  Windows windows;          ///< with channels in words
  int group_c;              ///< channels of a group of the source, in numbers
  bool transposed = false;  ///< weights are [groups][group_c][filter_taps][filters of a group], as
                            ///< those of an input gradient; else [K][R][S][group_c]
  int filter_taps = 0;      ///< of transposed weights
  WindowTaps taps = {};     ///< of transposed weights

  /// Whether rows of the operands are multiples of 16 bytes, as TMA needs them.
  bool rows_for_tma() const {
    return group_c % 8 == 0 && (!transposed || windows.group_k() % 8 == 0);
  }
};

/// The arrays of a HalfProduct.
struct HalfArrays {
  Input source, weights;  ///< of HalfProduct::dtype
  const float* bias;      ///< or null
  Output out;             ///< of HalfProduct::dtype
};

/// The same windows with channels in words; the last word of a group may be half empty.
inline Windows in_words(Windows windows) {
  windows.group_c = ceil_div(windows.group_c, 2);
  return windows;
}

/// The forward pass in half precision.
inline HalfProduct forward_product_of(const Conv2dProblem& conv) {
  return {.dtype = conv.dtype,
          .windows = in_words(forward_windows(conv)),
          .group_c = conv.C / conv.groups};
}

/// Whether the fields of TMA's im2col mode can hold the windows; else a warp gathers them.
inline bool fits_im2col(const Windows& windows) {
  const auto fits = [](int size, int outputs, int taps, int first, int stride, int dilation) {
    const std::int64_t last = first + (outputs - 1) * std::int64_t{stride} + 1 - size;
    return stride <= 8 && first >= -128 && first <= 127 && last >= -128 && last <= 127 &&
           (taps - 1) * std::int64_t{dilation} <= 255;
  };
  return fits(windows.H, windows.P, windows.R, windows.first.h, windows.stride.h,
              windows.dilation.h) &&
         fits(windows.W, windows.Q, windows.S, windows.first.w, windows.stride.w,
              windows.dilation.w);
}

/// Why the shape does not suit the kernels, if so: they count pixels of an image by an int; and a
/// step has the same number of channels of one tap, however few there are, so that a filter of one
/// channel that is as large as an image would spend minutes on products with zeros.
inline Declined why_no_windows(const Conv2dProblem& conv) {
  const std::int64_t pixels =
      std::max(std::int64_t{conv.H} * conv.W, std::int64_t{conv.P} * conv.Q);
  if (pixels > INT32_MAX) return text("images of ", pixels, " pixels: at most ", INT32_MAX);
  constexpr std::int64_t kMaxTaps = 1024;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  if (taps > kMaxTaps)
    return text("filters of ", taps, " taps, each a step of the sums: at most ", kMaxTaps);
  return gemm::why_no_wgmma();
}

/// The same for a rung in half precision.
inline Declined why_no_half_windows(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies numbers of 16 bits, and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  return why_no_windows(conv);
}

/// The same for a rung in TF32.
inline Declined why_no_tf32_windows(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32)
    return "rounds its operands to TF32, and the problem asks for fp32";
  return why_no_windows(conv);
}

inline constexpr int kMaxWindowSplits = 8;  ///< Parts of the sums, at most.

/// The shape of a kernel's tiles, and in how many parts it computes each sum.
struct WindowPlan {
  enum { narrow, tall, medium, large } shape;  ///< Narrow, Tall, Medium or Large
  int splits;                                  ///< parts of each sum, >= 1
};

/// The tiles of Shape that cover pixels by filters, and the steps: 32 channels of one tap each.
template <class Shape>
WgmmaWork work_of(const Windows& windows, int splits) {
  return {.tiles_m = ceil_div(windows.pixels(), std::int64_t{Shape::M}),
          .tiles_n = windows.groups * ceil_div(windows.group_k(), Shape::N),
          .splits = splits,
          .steps = windows.R * windows.S * windows.chunks(),
          .products = windows.groups,
          .map = windows.map};
}

/// Why the tile map has no grid for the windows, if so; that of the smallest tiles decides.
inline Declined why_no_tile_map(const Windows& windows) {
  if (windows.map == TileMap::row_major) return {};  // the kernel's own order, without a grid
  if (windows.map == TileMap::stream_k)
    return "the map stream_k: all tiles are cut into the same parts";
  const WgmmaWork work = work_of<Narrow>(windows, 1);
  return why_no_grid({.map = windows.map,
                      .tiles_m = static_cast<int>(std::min<std::int64_t>(work.tiles_m, INT32_MAX)),
                      .tiles_n = work.tiles_n / work.products,
                      .batch = work.products * kMaxWindowSplits});
}

/// Estimated cycles: waves of blocks, in each the steps and the stores, and what adding up the
/// parts costs. A step's cycles and the bytes per cycle are fitted to an H200.
template <class Shape>
double cycles(const Windows& windows, int splits, double step_cycles) {
  constexpr double kStoredBytes = 19, kAddedBytes = 1800;  // per cycle: of an SM, of all
  constexpr double kLaunch = 5000;
  const WgmmaWork work = work_of<Shape>(windows, splits);
  // Two blocks of an SM share its tensor cores: they take as long as one after the other.
  const double waves = std::ceil(static_cast<double>(work.items()) / multiprocessors());
  const double item = step_cycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes;
  const double bytes = 4.0 * static_cast<double>(windows.out_size()) * (splits + 1);
  return waves * item + (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
}

/// The fastest by that estimate. Only results that follow one another are computed in parts; under
/// the map split_k, all of them are.
inline WindowPlan plan_of(const Windows& windows) {
  constexpr int kLeastSteps = 8;  // of a part
  const int steps = work_of<Narrow>(windows, 1).steps;
  const bool whole = windows.out_stride.h == 1 && windows.out_stride.w == 1;
  const int fewest = windows.map == TileMap::split_k ? std::min(kDefaultSplits, steps) : 1;
  WindowPlan best = {WindowPlan::narrow, fewest};
  double least = cycles<Narrow>(windows, fewest, 600);
  for (int splits = fewest;
       splits == fewest || (whole && splits <= kMaxWindowSplits && splits * kLeastSteps <= steps);
       ++splits) {
    const auto consider = [&](decltype(WindowPlan::shape) shape, double estimate) {
      if (estimate >= least) return;
      best = {shape, splits};
      least = estimate;
    };
    consider(WindowPlan::tall, cycles<Tall>(windows, splits, 1150));
    consider(WindowPlan::medium, cycles<Medium>(windows, splits, 620));
    consider(WindowPlan::large, cycles<Large>(windows, splits, 1050));
  }
  return best;
}

/// Calls body(Shape) with the shape of a plan; Narrow where a warp gathers the operands.
template <class Body>
void with_shape(const WindowPlan& plan, bool by_tma, const Body& body) {
  switch (by_tma ? plan.shape : WindowPlan::narrow) {
    case WindowPlan::narrow: return body(Narrow{});
    case WindowPlan::tall: return body(Tall{});
    case WindowPlan::medium: return body(Medium{});
    case WindowPlan::large: return body(Large{});
  }
}

/// Floats of the workspace that hold the parts of the sums.
inline std::int64_t part_floats(const Windows& windows) {
  const int splits = plan_of(windows).splits;
  return splits > 1 ? splits * windows.out_size() : 0;
}

/// For a rung's choice: how the windows are computed.
inline std::string plan_in_words(const Windows& windows, bool by_tma) {
  if (windows.pixels() == 0) return "nothing to do";
  const WindowPlan plan = plan_of(windows);
  std::string words;
  with_shape(plan, by_tma, [&]<class Shape>(Shape) { words = text(Shape::M, " x ", Shape::N); });
  const bool pairs = windows.layout == Layout::nhwc && windows.group_k() % 2 == 0;
  return text(words, ", ", how_many(plan.splits, "part"), by_tma ? ", by TMA" : ", by a warp",
              pairs ? ", filters in pairs" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
