/// @file wgmma_windows.cuh
/// @brief Sums over windows as a matrix product for wgmma: the forward pass and, class by class,
/// the input gradient. What there is to compute, and the order of the steps of a sum.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kWgmmaStep;
using gemm::WgmmaItem;
using gemm::WgmmaWork;

/// @cond Doxygen looks for gemm among the classes.
using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Two blocks an SM, for small problems.
using Tall = gemm::WgmmaShape<256, 64, 5, 1>;     ///< Many pixels, few filters.
using Medium = gemm::WgmmaShape<128, 128, 6, 1>;  ///< Where Large would have too few tiles.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.
/// @endcond

/// out[n, p, q, k] = bias[k] + sum over r, s, c of
///   source[n, first + stride * p + dilation * r, ... q ... s, group(k) * group_c + c] *
///   weights[k][r][s][c]
/// for p < P, q < Q, with zeros outside of the source. The pixel (p, q) of out lies at (out_first +
/// out_stride * p, ...) of an image of out_H x out_W. Sums are stored activated.
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
  Activation activation = Activation::none;  ///< of the sums with their bias
  TileMap map = TileMap::row_major;  ///< of tiles; row_major stands for the kernel's own order

  /// Of all images: the rows of the product.
  HOST_DEVICE std::int64_t pixels() const { return std::int64_t{N} * P * Q; }
  /// Filters of a group.
  HOST_DEVICE int group_k() const { return K / groups; }
  /// Steps of kWgmmaStep channels, the last perhaps partial, for each tap.
  HOST_DEVICE int chunks() const { return ceil_div(group_c, kWgmmaStep); }
  /// From one channel of out to the next.
  HOST_DEVICE std::int64_t plane() const {
    return layout == Layout::nchw ? std::int64_t{out_H} * out_W : 1;
  }
  /// Floats of out, including pixels that these windows do not write.
  std::int64_t out_size() const { return std::int64_t{N} * out_H * out_W * K; }
};

/// The product as the kernels see it. Its output images are P x Q, where pixels follow one another.
inline Windows windows_of(const WindowProduct& product, Layout layout) {
  return {.layout = layout,
          .N = product.N,
          .P = product.rows,
          .Q = product.columns,
          .K = product.out_channels(),
          .groups = product.groups,
          .H = product.H,
          .W = product.W,
          .group_c = product.channels,
          .R = product.R,
          .S = product.S,
          .first = product.first,
          .stride = product.stride,
          .dilation = product.tap,
          .out_H = product.rows,
          .out_W = product.columns,
          .out_first = product.out_first,
          .out_stride = {1, 1}};
}

/// The arrays of a product of windows.
struct WindowArrays {
  const float *source, *weights, *bias;  ///< bias or null
  Layout source_layout,                  ///< of source in memory, which may have been repacked
      weights_layout;                    ///< nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  float *out, *parts;                    ///< parts: of part_floats(), where there are several
};

/// Which filters belong to a tile. Tiles do not cross groups.
template <class Shape>
struct FilterTiles {
  int group_k, group_tiles;  ///< filters of a group, and tiles of them

  /// Of a group's filters, Shape::N in a tile.
  explicit FilterTiles(const Windows& windows)
      : group_k(windows.group_k()), group_tiles(ceil_div(windows.group_k(), Shape::N)) {}
  /// The group of a tile's filters; tiles are counted through all groups.
  HOST_DEVICE int group(int tile) const { return tile / group_tiles; }
  /// A tile's first filter, of all K.
  HOST_DEVICE int first(int tile) const {
    return group(tile) * group_k + tile % group_tiles * Shape::N;
  }
};

/// The place in the sum: a tap of the filter, and kWgmmaStep channels of it.
struct Chunk {
  int r,  ///< row of the filter
      s,  ///< column of the filter
      c;  ///< the first of the channels, within the group
};

/// The chunk of a step: channels change fastest, then s, then r.
__device__ inline Chunk chunk_at(const Windows& windows, int step) {
  const int place = step / windows.chunks();
  return {place / windows.S, place % windows.S, step % windows.chunks() * kWgmmaStep};
}

/// To the next step's chunk, without divisions.
__device__ inline void advance(const Windows& windows, Chunk& chunk) {
  if ((chunk.c += kWgmmaStep) < windows.group_c) return;
  chunk.c = 0;
  if (++chunk.s < windows.S) return;
  chunk.s = 0;
  ++chunk.r;
}

/// Whether TMA's fields can hold the windows; else a warp gathers.
inline bool fits_the_copy_engine(const Windows& windows) {
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

/// Whether TMA can read arrays of these layouts, if they are aligned to 16 bytes.
inline bool takes_the_copy_engine(const Windows& windows, Layout source, Layout weights) {
  return fits_the_copy_engine(windows) && windows.group_c % 4 == 0 && source == Layout::nhwc &&
         weights == Layout::nhwc;
}

/// Whether TMA loads the product's factors; else a warp gathers them.
inline bool by_the_copy_engine(const Windows& windows, const WindowArrays& arrays) {
  const auto is_aligned = [](const float* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  return takes_the_copy_engine(windows, arrays.source_layout, arrays.weights_layout) &&
         is_aligned(arrays.source) && is_aligned(arrays.weights);
}

/// Why the shape does not suit the kernel, if so: pixels of an image are counted by an int; and a
/// step is the same number of channels of one tap, however few there are, so that a filter of one
/// channel that is as large as an image would spend minutes on products with zeros.
inline Declined why_no_windows(const Conv2dProblem& conv) {
  const std::int64_t pixels =
      std::max(std::int64_t{conv.H} * conv.W, std::int64_t{conv.P} * conv.Q);
  if (pixels > INT32_MAX) return text("images of ", pixels, " pixels: at most ", INT32_MAX);
  constexpr std::int64_t kMaxTaps = 1024;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  if (taps <= kMaxTaps) return {};
  return text("filters of ", taps, " taps, each a step of the sums: at most ", kMaxTaps);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
