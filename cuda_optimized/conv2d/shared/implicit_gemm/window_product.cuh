/// @file window_product.cuh
/// @brief A convolution as a GEMM whose operand B is gathered from windows: the forward pass and,
/// class by class of pixels, the input gradient. Its sizes, tiles and stores.
///
/// - WindowProduct: the formula, for all layouts.
/// - ProductSizes, TileOfBlock, TileShape: a grid of tiles in NCHW (implicit_gemm/tiled.cu and on).
/// - GatheredProduct: the same with precomputed divisions and packed weights (warp_tiles.cu).
/// - StoreImages: accumulators to y, with bias and activation, four neighbours a thread or, where
///   those are not aligned, 32 neighbours a warp.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// For each pixel (i, j) of rows x columns of each image, and for each filter m of each group,
///
///     out[m, i, j] = sum over c, r, s of weight[m, c, r, s]
///                      * source[c, first.h + i * stride.h + r * tap.h,
///                                  first.w + j * stride.w + s * tap.w]
///
/// with zeros outside of the source: a GEMM whose operand B is gathered. Kernels derive their own
/// parameters from it: GatheredProduct for NCHW, GatheredGemm for `mma.sync`, Windows for `wgmma`.
struct WindowProduct {
  int N, groups;            ///< images and groups of the convolution
  int channels, H, W;       ///< of the source: channels of a group, extents of an image
  int filters;              ///< of a group: output channels
  int rows, columns;        ///< output pixels of an image
  int R, S;                 ///< taps of a window
  Step stride, first;       ///< where a pixel's window begins in the source; may be in its padding
  Step tap;                 ///< in the source, from a tap to the next one; may be negative
  Step out_first = {0, 0};  ///< where pixel (0, 0) lies in an output image

  /// Pixels of an image.
  HOST_DEVICE int image_pixels() const { return rows * columns; }
  /// Pixels of all images, if they fit 31 bits.
  HOST_DEVICE int pixels() const { return N * rows * columns; }
  /// Output channels of all groups.
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

/// The reason not to support a problem: it is not fp32 in NCHW, or its sizes exceed 31 bits.
inline Declined why_no_product(const Conv2dProblem& conv) {
  constexpr std::int64_t kMost = 0x7fff0000;  // a tile may reach beyond the last one
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (std::int64_t{conv.C / conv.groups} * conv.R * conv.S > kMost) {
    return "a filter has 2^31 weights or more";
  }
  // Also without images: kernels divide by the pixels of an image.
  if (std::int64_t{std::max(1, conv.N)} * conv.P * conv.Q > kMost) {
    return "an output channel of all images has 2^31 pixels or more";
  }
  return {};
}

/// The sizes of the product of one group: y[m,j] = sum over k of weights[m,k] * column[k,j].
struct ProductSizes {
  int filters;          ///< m: rows of weights and y, K / groups
  int depth;            ///< k: products of a sum, C / groups * R * S
  int image_pixels;     ///< P * Q
  std::int64_t pixels;  ///< j: columns of x and y, N * P * Q, counted through all images

  /// The sizes of a problem for which why_no_product() gives no reason.
  HOST_DEVICE explicit ProductSizes(const Conv2dProblem& conv)
      : filters(conv.K / conv.groups), depth(conv.C / conv.groups * conv.R * conv.S),
        image_pixels(conv.P * conv.Q), pixels(std::int64_t{conv.N} * conv.P * conv.Q) {}
};

/// why_no_product(), for a kernel that supports the map row_major alone.
inline Declined why_no_product_row_by_row(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  return why_no_product(conv);
}

/// A quotient and a remainder.
struct Divided {
  int quotient,   ///< rounded down
      remainder;  ///< 0 to the divisor - 1
};

/// n / divisor and n % divisor, of numbers that are not negative. As unsigned ones they take 15
/// instructions instead of 25 (a GPU has no integer division; see core/fast_division.hpp).
__device__ inline Divided divided(int n, int divisor) {
  const auto quotient = static_cast<int>(static_cast<unsigned>(n) / static_cast<unsigned>(divisor));
  return {quotient, n - quotient * divisor};
}

/// The tile of a block, in a grid of all tiles. Blocks with the same pixels are neighbours: the
/// others find in the L2 cache what one of them gathers.
struct TileOfBlock {
  int group;   ///< which group of filters
  int filter;  ///< the first one, counted within the group
  int pixel;   ///< the first one

  /// The tile of this block. T::kTileM x T::kTileN are a tile's filters and pixels.
  template <class T>
  __device__ static TileOfBlock find(const ProductSizes& sizes) {
    const int m_tiles = ceil_div(sizes.filters, T::kTileM);
    const auto n_tiles = static_cast<int>(ceil_div<std::int64_t>(sizes.pixels, T::kTileN));
    const Divided rest = divided(static_cast<int>(blockIdx.x), m_tiles);
    const Divided group = divided(rest.quotient, n_tiles);
    return {group.quotient, rest.remainder * T::kTileM, group.remainder * T::kTileN};
  }

  /// The grid.
  template <class T>
  static dim3 grid(const Conv2dProblem& conv) {
    const ProductSizes sizes(conv);
    const std::int64_t tiles =
        ceil_div<std::int64_t>(sizes.pixels, T::kTileN) * ceil_div(sizes.filters, T::kTileM);
    return dim3(static_cast<unsigned>(tiles * conv.groups));
  }
};

/// How large a block's tile is, filters x pixels.
enum class TileShape {
  large,  ///< 128 x 128
  half,   ///< 64 x 128, where half of the last large tile would be empty, or large ones are few
  small   ///< 32 x 32, where larger ones would be mostly empty, or too few
};

/// The shape in words, for a rung's choice.
inline const char* in_words(TileShape shape) {
  return shape == TileShape::large  ? "128 x 128"
         : shape == TileShape::half ? "64 x 128"
                                    : "32 x 32";
}

/// The shape for so many filters of a group, and pixels of all images.
inline TileShape shape_for(int filters, std::int64_t pixels, int groups) {
  constexpr std::int64_t kFewTiles = 64;  // an H200 has 132 SMs: most of them would be idle
  if (filters <= 32 || pixels < 1024) return TileShape::small;
  const int rest = filters % 128;  // filters of the last large tile
  const std::int64_t tiles = ceil_div<std::int64_t>(pixels, 128) * ceil_div(filters, 128);
  return (rest > 0 && rest <= 64) || tiles * groups <= kFewTiles ? TileShape::half
                                                                 : TileShape::large;
}
/// The shape for a problem's forward pass.
inline TileShape shape_for(const Conv2dProblem& conv) {
  const ProductSizes sizes(conv);
  return shape_for(sizes.filters, sizes.pixels, conv.groups);
}

/// The parameters of the kernels for NCHW: a window product and its tiles.
struct GatheredProduct : WindowProduct {
  bool table = false;              ///< steps along k are (c, r, s); otherwise (r, s, c)
  int m_tiles = 0, n_tiles = 0;    ///< tiles along the channels, and along the pixels
  int steps = 0;                   ///< of T::kBlockK products each; 0 where there are no taps
  int k_rows = 0;                  ///< steps * T::kBlockK
  int padded_m = 0, padded_c = 0;  ///< filters and channels, rounded up to whole tiles
  FastDivision by_image = {};      ///< by rows * columns
  FastDivision by_row = {};        ///< by columns

  /// Floats of the packed weights.
  HOST_DEVICE std::int64_t packed_floats() const {
    return std::int64_t{groups} * k_rows * padded_m;
  }
};

/// The reason not to support sizes that exceed 31 bits when rounded up to whole tiles.
inline Declined why_no_padded_product(std::int64_t filters, std::int64_t group_c,
                                      std::int64_t taps) {
  if (filters > 0x7fff0000) return "more than 2^31 - 2^16 filters, which tiles round up";
  if ((group_c + 31) * taps > 0x7fffffff) {
    return "a filter, its channels rounded up to 32, has 2^31 weights or more";
  }
  return {};
}

/// The parameters for tiles of T::kBlockM channels x T::kBlockN pixels.
/// @param table whether steps along k are (c, r, s)
template <class T>
GatheredProduct planned(const WindowProduct& unplanned, bool table) {
  GatheredProduct product{unplanned};
  const int taps = product.R * product.S;
  product.table = table;
  product.m_tiles = ceil_div(product.filters, T::kBlockM);
  product.n_tiles = ceil_div(product.pixels(), T::kBlockN);
  product.padded_m = product.m_tiles * T::kBlockM;
  product.padded_c = ceil_div(product.channels, T::kBlockK) * T::kBlockK;
  product.steps =
      table ? ceil_div(product.channels * taps, T::kBlockK) : product.padded_c / T::kBlockK * taps;
  product.k_rows = product.steps * T::kBlockK;
  product.by_image = FastDivision(std::max(1, product.image_pixels()));
  product.by_row = FastDivision(std::max(1, product.columns));
  return product;
}

/// The tile of a block.
struct BlockPlace {
  int m, n;   ///< the first channel, counted within the group, and the first pixel
  int group;  ///< which group of channels
  int split;  ///< which part of the steps along k
};

/// An entry of the table of taps, for one k = (c, r, s); for steps that are not taken tap by tap.
struct TapOffset {
  unsigned offset;  ///< bytes from the window's corner, modulo 2^32
  unsigned bits;    ///< bit r, and bit R + s
};
/// Rows of the table of offsets in shared memory: 16 KB.
inline constexpr int kMaxTableRows = 2048;

/// Whether the steps along k are (c, r, s) with a table, rather than (r, s, c): where whole tiles
/// of channels would be mostly padding.
inline bool takes_table(const WindowProduct& product, int block_k) {
  return product.channels % block_k != 0 && product.R + product.S <= 31 &&
         std::int64_t{product.channels} * product.R * product.S <= kMaxTableRows - block_k &&
         std::int64_t{product.channels} * product.H * product.W < 0x40000000;
}

/// Bytes of a product's table in shared memory.
inline std::size_t table_bytes(const GatheredProduct& product) {
  return product.table ? static_cast<std::size_t>(product.k_rows) * sizeof(TapOffset) : 0;
}

/// The row of k where weight (c, tap) lies.
__device__ inline std::int64_t packed_row(const GatheredProduct& product, int c, int tap) {
  return product.table ? std::int64_t{c} * (product.R * product.S) + tap
                       : std::int64_t{tap} * product.padded_c + c;
}

/// The channels, rounded up so that their weights, or zeros, fill all rows of k.
inline int packed_channels(const GatheredProduct& product) {
  return product.table ? ceil_div(product.k_rows, product.R * product.S) : product.padded_c;
}

/// Whether four pixels of a tile are four neighbours, and aligned if the output is.
inline bool pixels_in_fours(const WindowProduct& product) {
  return product.image_pixels() % 4 == 0;
}

/// Stores accumulators to out [images][channels][rows][columns], after bias and activation: these
/// cost no pass over out, as the accumulators are still in registers.
struct StoreImages {
  float* out;             ///< [images][channels][rows][columns]
  const float* bias;      ///< [channels] or null
  Activation activation;  ///< applied after the bias
  bool fours;  ///< whether four pixels of a tile are four neighbours, aligned to 16 bytes

  /// To out_, plus bias_ unless that is null.
  StoreImages(const GatheredProduct& product, float* out_, const float* bias_,
              Activation activation_ = Activation::none)
      : out(out_), bias(bias_), activation(activation_),
        fours(pixels_in_fours(product) &&
              reinterpret_cast<std::uintptr_t>(out_) % sizeof(float4) == 0) {}

  /// Stores a block's accumulators, except those beyond the last channel or pixel.
  /// @param shared kThreads * kThreadN floats of shared memory, used unless `fours`
  template <class T>
  __device__ void store(const GatheredProduct& product, const BlockPlace& place, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], float* shared) const {
    const int image_pixels = product.image_pixels();
    const std::int64_t image_floats = std::int64_t{product.out_channels()} * image_pixels;
    if (fours) {
#pragma unroll
      for (int j = 0; j < T::kThreadN; j += 4) {
        const int pixel = place.n + tile.n + T::column(j);
        if (pixel >= product.pixels()) continue;
        const int image = product.by_image.quotient(pixel);
        float* const to = out + image * image_floats + product.by_image.remainder(pixel, image);
#pragma unroll
        for (int i = 0; i < T::kThreadM; ++i) {
          const int m = place.m + tile.m + T::row(i);
          if (m >= product.filters) continue;
          const int channel = place.group * product.filters + m;
          const float start = bias ? bias[channel] : 0.0f;
          const auto result = [&](int e) { return activated(activation, start + sums[i][j + e]); };
          reinterpret_cast<float4*>(to)[std::int64_t{channel} * (image_pixels / 4)] =
              float4{result(0), result(1), result(2), result(3)};
        }
      }
      return;
    }
    for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      m += place.m;
      const int pixel = place.n + n;
      if (m >= product.filters || pixel >= product.pixels()) return;
      const int channel = place.group * product.filters + m;
      const int image = product.by_image.quotient(pixel);
      out[image * image_floats + std::int64_t{channel} * image_pixels +
          product.by_image.remainder(pixel, image)] =
          activated(activation, (bias ? bias[channel] : 0.0f) + sum);
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
