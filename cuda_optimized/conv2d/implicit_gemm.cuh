/// @file implicit_gemm.cuh
/// @brief A convolution as a matrix product: what the implicit_gemm rungs have in common.
#pragma once

#include <algorithm>

#include "core/cuda/launch.hpp"
#include "core/rung.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The sizes of the product of one group: y[m,j] = sum over k of weights[m,k] * column[k,j].
struct ProductSizes {
  int filters;          ///< m: rows of weights and y, K / groups
  int depth;            ///< k: products a sum, C / groups * R * S
  int image_pixels;     ///< P * Q
  std::int64_t pixels;  ///< j: columns of x and y, N * P * Q, counted through all images

  /// The sizes for a problem that why_no_product() does not decline.
  HOST_DEVICE explicit ProductSizes(const Conv2dProblem& conv)
      : filters(conv.K / conv.groups), depth(conv.C / conv.groups * conv.R * conv.S),
        image_pixels(conv.P * conv.Q), pixels(std::int64_t{conv.N} * conv.P * conv.Q) {}
};

/// Why a problem is no product of float32 matrices in NCHW whose sizes fit 31 bits.
inline Declined why_no_product(const Conv2dProblem& conv) {
  constexpr std::int64_t kMost = 0x7fff0000;  // a tile may reach behind the last one
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (std::int64_t{conv.C / conv.groups} * conv.R * conv.S > kMost) {
    return "a filter has 2^31 weights or more";
  }
  // Also of no image: kernels divide by an image's pixels.
  if (std::int64_t{std::max(1, conv.N)} * conv.P * conv.Q > kMost) {
    return "an output channel of all images has 2^31 pixels or more";
  }
  return {};
}

/// The same for a kernel whose blocks take the tiles of the product in one order, row by row.
inline Declined why_no_product_row_by_row(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  return why_no_product(conv);
}

inline constexpr std::size_t kAlignment = 16;  ///< Extra bytes of a workspace for aligned().

/// The first address of a workspace that is a multiple of 16; at most 15 bytes further on.
template <class T>
T* aligned(void* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + (16 - address % 16) % 16);
}

/// A quotient and a remainder.
struct Divided {
  int quotient,   ///< rounded down
      remainder;  ///< 0 to the divisor - 1
};

/// n / divisor and n % divisor, of numbers that are not negative. Told so, the compiler needs 15
/// instructions instead of 25 (a GPU has no instruction for it; see core/fast_division.hpp).
__device__ inline Divided divided(int n, int divisor) {
  const auto quotient = static_cast<int>(static_cast<unsigned>(n) / static_cast<unsigned>(divisor));
  return {quotient, n - quotient * divisor};
}

/// The tile of a block, in a grid of all tiles. Blocks with the same pixels are neighbours: what
/// one of them gathers is in the L2 cache for the others.
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

/// For a rung's choice.
inline const char* in_words(TileShape shape) {
  return shape == TileShape::large  ? "128 x 128"
         : shape == TileShape::half ? "64 x 128"
                                    : "32 x 32";
}

/// The shape that suits products of that many filters of a group, and pixels of all images.
inline TileShape shape_for(int filters, std::int64_t pixels, int groups) {
  constexpr std::int64_t kFewTiles = 64;  // an H200 has 132 SMs: most of them would be idle
  if (filters <= 32 || pixels < 1024) return TileShape::small;
  const int rest = filters % 128;  // filters of the last large tile
  const std::int64_t tiles = ceil_div<std::int64_t>(pixels, 128) * ceil_div(filters, 128);
  return (rest > 0 && rest <= 64) || tiles * groups <= kFewTiles ? TileShape::half
                                                                 : TileShape::large;
}
/// The shape that suits a problem's forward pass.
inline TileShape shape_for(const Conv2dProblem& conv) {
  const ProductSizes sizes(conv);
  return shape_for(sizes.filters, sizes.pixels, conv.groups);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
