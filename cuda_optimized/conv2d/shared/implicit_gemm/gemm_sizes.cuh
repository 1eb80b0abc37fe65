/// @file gemm_sizes.cuh
/// @brief A convolution as a matrix product: its sizes, and which problems have them.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"

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

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
