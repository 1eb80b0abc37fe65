/// @file winograd_plan.cuh
/// @brief Which convolutions the winograd rungs take, and where their tiles lie.
#pragma once

#include <algorithm>
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Tiles of `side` x `side` outputs, counted through the images.
struct WinogradTiles {
  int side;          ///< m of F(m x m, 3 x 3)
  int down, across;  ///< of an image
  std::int64_t all;  ///< of all images

  /// Of y.
  HOST_DEVICE WinogradTiles(const Conv2dProblem& conv, int side_)
      : side(side_), down(ceil_div(conv.P, side)), across(ceil_div(conv.Q, side)),
        all(std::int64_t{conv.N} * down * across) {}

  /// Where a tile lies: its image, and its first output.
  struct Place {
    int n, p, q;  ///< image, row and column of y
  };
  /// @param tile 0 ... all - 1
  __device__ Place place(std::int64_t tile) const {
    const auto t = static_cast<unsigned>(tile);  // below 2^31, see why_no_winograd()
    const unsigned row = t / static_cast<unsigned>(across), n = row / static_cast<unsigned>(down);
    return {static_cast<int>(n), static_cast<int>(row - n * static_cast<unsigned>(down)) * side,
            static_cast<int>(t - row * static_cast<unsigned>(across)) * side};
  }
};

/// Nothing, or why Winograd's F(side x side, 3 x 3) does not compute it.
inline Declined why_no_winograd(const Conv2dProblem& conv, int side) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R != 3 || conv.S != 3) return "filters of 3x3 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  // Tiles may end beyond y by less than one.
  constexpr int kMost = std::numeric_limits<int>::max() - 1024;
  if (WinogradTiles(conv, side).all > kMost) return "2^31 - 1024 or more tiles";
  if (conv.C > kMost || conv.K > kMost || conv.P > kMost || conv.Q > kMost)
    return "an extent of 2^31 - 1024 or more";
  return {};
}

/// The tiles of a product: for many filters, where half of those would be zeros, for few; and those
/// of gemm's product on tensor cores.
enum class WinogradShape { wide, half, small, tensor_cores };

/// The sizes of the products of a winograd rung, U V for each frequency and group: rounded up to
/// whole tiles of the product, with zeros, so that its loop has no edges.
struct WinogradProduct {
  WinogradShape shape;   ///< Of the product's tiles.
  int products;          ///< frequencies * groups
  std::int64_t m, n, k;  ///< filters, tiles and channels, of a group

  /// U [product][k][m], with tensor cores [product][m][k]
  HOST_DEVICE std::int64_t u_floats() const { return products * k * m; }
  HOST_DEVICE std::int64_t v_floats() const { return products * k * n; }  ///< V [product][k][n]

  /// Of U, V and M. @throws BadInput if that is 2^63 or more
  std::size_t workspace_bytes() const {
    const std::int64_t floats = checked_product({products, k, m}, "floats of U") +
                                checked_product({products, k, n}, "floats of V") +
                                checked_product({products, m, n}, "floats of M");
    return static_cast<std::size_t>(checked_product({floats, sizeof(float)}, "bytes of U, V, M"));
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
