/// @file implicit_gemm.cuh
/// @brief A convolution as a matrix product: what the implicit_gemm rungs have in common.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/rung.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The sizes of the product of one group: y[m,j] = sum over k of weights[m,k] * column[k,j].
struct ProductSizes {
  int filters;          ///< m: rows of weights and y, K / groups
  int depth;            ///< k: products a sum, C / groups * R * S
  int image_pixels;     ///< P * Q
  std::int64_t pixels;  ///< j: columns of x and y, N * P * Q, counted through all images

  /// Of a problem that why_no_product() does not decline.
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
  if (std::int64_t{conv.N} * conv.P * conv.Q > kMost) {
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

inline constexpr std::size_t kAlignment = 16;  ///< Bytes that aligned() may skip, and one more.

/// The first address of a workspace that is a multiple of 16; at most 15 bytes further on.
template <class T>
T* aligned(void* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + (16 - address % 16) % 16);
}

/// Whether large tiles would compute mostly what nobody asked for, or be too few to matter.
template <int kTileM, int kTileN>
bool is_small(const ProductSizes& sizes) {
  return sizes.filters < kTileM / 2 || sizes.pixels < 8 * kTileN;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
