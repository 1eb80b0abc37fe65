/// @file tma_windows.cuh
/// @brief An NHWC convolution in half precision whose operands TMA loads: the tensor maps, the tile
/// of a block, and the stores of accumulators. cuda_optimized/conv2d/implicit_gemm/tma_im2col.cu
/// explains them.
#pragma once

#include <algorithm>
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kHalfStep;
inline constexpr int kSwizzleBytes = 1024;  ///< After which the 128-byte swizzle repeats.
/// TMA counts channels in words of 32 bits, two channels each: those of a stage.
inline constexpr int kStageWords = kHalfStep / 2;
inline constexpr int kUnalignedThreads = 256;  ///< Of a block of conv2d_unaligned_windows.

/// The tensor maps of a problem's operands, and what the kernels derive from its sizes.
struct TmaWindows {
  CUtensorMap x;        ///< im2col mode, of [N][H][W][C]
  CUtensorMap weights;  ///< tiled mode, of [K][R * S][C / groups]
  Conv2dProblem conv;   ///< of which these are
  int group_words;      ///< channels of a group, in words
  int tiles_n;          ///< tiles of filters
  int steps;            ///< along k: 64 channels of a tap each
};

/// The tile of a block. Blocks that run at the same time share pixels: filters are the fastest.
struct WindowTile {
  int m0, n0;   ///< its first pixel, of all images, and its first filter
  int n, h, w;  ///< where the window of its first pixel begins in x: in the padding, perhaps
  int word;     ///< the first channel of its group
};

/// The tile of this block, of kM pixels and kN filters.
template <int kM, int kN>
__device__ inline WindowTile tile_of_block(const TmaWindows& windows) {
  const Conv2dProblem& conv = windows.conv;
  const int tile = static_cast<int>(blockIdx.x), tile_m = tile / windows.tiles_n;
  const int m0 = tile_m * kM, n0 = tile % windows.tiles_n * kN;
  const int row = m0 / conv.Q, n = row / conv.P;
  return {.m0 = m0,
          .n0 = n0,
          .n = n,
          .h = row % conv.P * conv.stride.h - conv.pad.top,
          .w = m0 % conv.Q * conv.stride.w - conv.pad.left,
          .word = n0 / (conv.K / conv.groups) * windows.group_words};
}

/// A step along k: the next tap and channels to be loaded.
struct WindowStep {
  int r = 0, s = 0, word = 0;  ///< row and column of the tap, first channel

  /// To the next 64 channels, or to the next tap.
  __device__ void advance(const TmaWindows& windows) {
    if ((word += kStageWords) < windows.group_words) return;
    word = 0;
    if (++s < windows.conv.S) return;
    s = 0;
    ++r;
  }
};

/// y [pixels][K], where the lanes of a warp store accumulators.
template <class T>
struct PixelRows {
  gemm::RowsOfC<T> y;     ///< rows of K filters
  const float* bias;      ///< [K] or null
  Activation activation;  ///< of the sums with their bias

  /// The bias of filters n ... n + 31: of the pairs of which this lane has accumulators.
  __device__ void load_bias(int n, float2 (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = n + 8 * i + static_cast<int>(threadIdx.x % 4) * 2;
      pairs[i].x = bias != nullptr && k < y.N ? bias[k] : 0.0f;
      pairs[i].y = bias != nullptr && k + 1 < y.N ? bias[k + 1] : 0.0f;
    }
  }
  /// Stores filters n ... n + 31 of pixel m for each quad of lanes. @param pair i -> this lane's
  /// two accumulators of filters n + 8 i ... n + 8 i + 7
  template <class Pair>
  __device__ void store(int m, int n, const float2 (&added)[4], const Pair& pair) const {
    float2 out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 sums = pair(i);
      out[i] = {activated(activation, sums.x + added[i].x),
                activated(activation, sums.y + added[i].y)};
    }
    y.store(y.row(m), n, out[0], out[1], out[2], out[3]);
  }
};

/// One thread an output, for arrays that are not aligned to 16 bytes: TMA cannot read them. Block
/// kUnalignedThreads.
template <class T>
__global__ void conv2d_unaligned_windows(Conv2dProblem conv, const T* x, const T* weights,
                                         const float* bias, T* y) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t outputs = std::int64_t{conv.N} * conv.P * conv.Q * conv.K;
  for (const std::int64_t i : grid_stride<kUnalignedThreads>(outputs)) {
    const int k = static_cast<int>(i % conv.K), q = static_cast<int>(i / conv.K % conv.Q);
    const std::int64_t row = i / conv.K / conv.Q;
    const int p = static_cast<int>(row % conv.P), n = static_cast<int>(row / conv.P);
    float sum = bias != nullptr ? bias[k] : 0.0f;
    for (int tap = 0; tap < conv.R * conv.S; ++tap) {
      const int h = p * conv.stride.h - conv.pad.top + tap / conv.S * conv.dilation.h;
      const int w = q * conv.stride.w - conv.pad.left + tap % conv.S * conv.dilation.w;
      if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) continue;
      const T* const pixel = x + Index4{conv.H, conv.W, conv.C}(n, h, w, k / group_k * group_c);
      const T* const filter = weights + (std::int64_t{k} * conv.R * conv.S + tap) * group_c;
      for (int c = 0; c < group_c; ++c) sum += to_float(pixel[c]) * to_float(filter[c]);
    }
    y[i] = rounded_to<T>(activated(conv.activation, sum));
  }
}

/// Pixels of all images: the rows of the product.
inline std::int64_t pixels_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.P * conv.Q;
}

/// Where windows begin along an axis, relative to the image: the bounding box of an im2col map.
struct WindowRange {
  std::int64_t lower, upper;  ///< the first one; beyond the end of the image, the last one
  /// @param outputs, size of y and of x along the axis
  WindowRange(int pad, int outputs, int stride, int size)
      : lower(-pad), upper(std::int64_t{outputs - 1} * stride + 1 - pad - size) {}
  /// Whether the fields of a tensor map of four axes can hold it.
  bool fits() const { return lower >= -128 && upper >= -128 && upper <= 127; }
};

/// Why TMA in im2col mode cannot load the operands, if so: the limits of cuTensorMapEncodeIm2col
/// and of `cp.async.bulk.tensor`.
inline Declined why_no_tma_windows(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies half precision (fp16, bf16), and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  if (conv.C % 8 != 0)
    return "channels that are no multiple of 8: the strides of a tensor map are multiples of 16 "
           "bytes";
  if (conv.groups > 1 && (conv.C / conv.groups % kHalfStep != 0 || conv.K / conv.groups % 64 != 0))
    return "groups: a tile has 64 channels and 64 filters of one group";
  if (conv.stride.h > 8 || conv.stride.w > 8)
    return "strides over 8: those of a tensor map are 1 to 8";
  if (!WindowRange(conv.pad.top, conv.P, conv.stride.h, conv.H).fits() ||
      !WindowRange(conv.pad.left, conv.Q, conv.stride.w, conv.W).fits()) {
    return "the first or the last window begins too far from the first or the last pixel: the "
           "corners of an im2col bounding box are at most 128 pixels from those of the image";
  }
  const std::int64_t reach = std::max((conv.R - 1) * std::int64_t{conv.dilation.h},
                                      (conv.S - 1) * std::int64_t{conv.dilation.w});
  if (reach > 255) return text("taps that are ", reach, " pixels apart: im2col offsets end at 255");
  if (pixels_of(conv) > INT32_MAX - 256) return "2^31 pixels and more";
  return {};
}

/// The tiles of S that cover pixels by filters.
template <class S>
std::int64_t tiles_of(const Conv2dProblem& conv) {
  return ceil_div(pixels_of(conv), std::int64_t{S::M}) * ceil_div(conv.K, S::N);
}

/// Estimated cycles of the waves of tiles of S. A block alone on an SM waits for its own stages,
/// which takes 0.4 of its time more. Infinite, if the GPU cannot hold the stages, or if a tile
/// would have filters of two groups.
template <class S>
double cycles_of(const Conv2dProblem& conv) {
  if (S::kSharedBytes > max_shared_bytes() || (conv.groups > 1 && conv.K / conv.groups % S::N != 0))
    return std::numeric_limits<double>::infinity();
  const double steps = conv.R * conv.S * ceil_div(conv.C / conv.groups, kHalfStep);
  const auto tiles =
      static_cast<double>(ceil_div(tiles_of<S>(conv), std::int64_t{multiprocessors()}));
  return std::max(1.4, tiles) * (steps * S::kStepCycles + S::kEndCycles);
}

/// Calls body(S) for the shape of the least estimated time; the first one takes every problem.
template <class S, class... Others, class Body>
auto with_fastest_shape(const Conv2dProblem& conv, const Body& body) {
  if constexpr (sizeof...(Others) == 0) {
    return body(S{});
  } else {
    return [&]<class Next, class... Rest>(Next, Rest...) {
      return cycles_of<Next>(conv) < cycles_of<S>(conv)
                 ? with_fastest_shape<Next, Rest...>(conv, body)
                 : with_fastest_shape<S, Rest...>(conv, body);
    }(Others{}...);
  }
}

/// The tensor maps for tiles of S.
template <class S, class T>
TmaWindows tma_windows(const Conv2dProblem& conv, const T* x, const T* weights) {
  const WindowRange rows(conv.pad.top, conv.P, conv.stride.h, conv.H);
  const WindowRange columns(conv.pad.left, conv.Q, conv.stride.w, conv.W);
  const int words = conv.C / conv.groups / 2, taps = conv.R * conv.S;
  const Im2colMap windows = {.N = conv.N,
                             .H = conv.H,
                             .W = conv.W,
                             .C = conv.C / 2,
                             .lower_h = static_cast<int>(rows.lower),
                             .lower_w = static_cast<int>(columns.lower),
                             .upper_h = static_cast<int>(rows.upper),
                             .upper_w = static_cast<int>(columns.upper),
                             .stride_h = conv.stride.h,
                             .stride_w = conv.stride.w,
                             .pixels = S::M};
  const TiledMap filters = {.rank = 3,
                            .extents = {words, taps, conv.K},
                            .strides = {1, words, std::int64_t{taps} * words},
                            .box = {kStageWords, 1, S::N}};
  return {.x = tensor_map(windows, reinterpret_cast<const std::uint32_t*>(x)),
          .weights = tensor_map(filters, reinterpret_cast<const std::uint32_t*>(weights)),
          .conv = conv,
          .group_words = words,
          .tiles_n = ceil_div(conv.K, S::N),
          .steps = taps * ceil_div(words, kStageWords)};
}

/// Launches `kernel`, a kernel with tiles of S, or conv2d_unaligned_windows.
template <class S, class T>
void launch_tma_windows(void (*kernel)(TmaWindows, PixelRows<T>), const Conv2dProblem& conv,
                        const Conv2dArrays& arrays) {
  const T *x = arrays.x, *weights = arrays.weights;
  const float* const bias = arrays.bias;
  T* const y = arrays.y;
  if (conv.N == 0) return;
  if (!gemm::begin_at_16_bytes(x, weights)) {
    launch(conv2d_unaligned_windows<T>,
           {blocks_for(pixels_of(conv) * conv.K, kUnalignedThreads), kUnalignedThreads}, conv, x,
           weights, bias, y);
    return;
  }
  const auto rows =
      gemm::rows_of_c<T>({.M = static_cast<int>(pixels_of(conv)), .N = conv.K, .K = 1}, y);
  launch(kernel, {blocks_for(tiles_of<S>(conv), 1), S::kThreads, S::kSharedBytes},
         tma_windows<S>(conv, x, weights), PixelRows<T>{rows, bias, conv.activation});
}

/// For a rung's choice: the tile, and how outputs are stored.
template <class S>
std::string tma_windows_in_words(const Conv2dProblem& conv) {
  const char* const stores = conv.K % 8 == 0   ? ", stores in eights"
                             : conv.K % 2 == 0 ? ", stores in pairs"
                                               : "";
  return text(dtype_name(conv.dtype, conv.precision), ", ", S::M, " x ", S::N, stores);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
