/// @file tensor_map.hpp
/// @brief Descriptions of arrays for Hopper's copy engine (TMA): what to copy, in which boxes.
///
/// A kernel takes a CUtensorMap by value, as `const __grid_constant__ CUtensorMap`, and passes its
/// address to ptx::tma_load() or ptx::tma_load_im2col(). Both kinds here are of floats that the
/// engine rounds to TF32 on the way, in boxes whose rows of 32 floats arrive permuted by the
/// 128-byte swizzle that ptx::wgmma_descriptor() expects.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Floats in a row of a box: the 128 bytes of the swizzle.
constexpr int kTensorMapRow = 32;

/// A tiled map of an array with up to four axes, innermost first.
struct TiledMap {
  int rank;                             ///< Axes, 2 to 4.
  std::array<std::int64_t, 4> extents;  ///< Of the array.
  std::array<std::int64_t, 4>
      strides;             ///< Floats between neighbours; [0] is 1, others multiples of 4.
  std::array<int, 4> box;  ///< What one copy brings; [0] is kTensorMapRow at most.
};

/// An im2col map of an array [N][H][W][C].
struct Im2colMap {
  int N, H, W, C;          ///< C is a multiple of 4.
  int lower_h, lower_w;    ///< Where the first windows begin: minus the padding.
  int upper_h, upper_w;    ///< How far beyond the last row and column windows begin, at most.
  int stride_h, stride_w;  ///< Between windows, 1 to 8.
  int pixels;              ///< That one copy brings, up to 1024.
};

/// @throws DeviceError if the driver refuses.
CUtensorMap tensor_map(const TiledMap& map, const float* data);
/// @throws DeviceError if the driver refuses.
CUtensorMap tensor_map(const Im2colMap& map, const float* data);

}  // namespace convladder::BACKEND
