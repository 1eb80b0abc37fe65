/// @file tensor_map.hpp
/// @brief Descriptions of arrays for Hopper's TMA (TMA): what to copy, in which boxes.
///
/// A kernel takes a CUtensorMap by value, as `const __grid_constant__ CUtensorMap`, and passes its
/// address to ptx::tma_load() or ptx::tma_load_im2col(). Both kinds are here of floats that the
/// engine rounds to TF32 on the way and of words that it leaves alone, the tiled one also of floats
/// as they are and of numbers of 16 bits, in boxes whose rows of 128 bytes arrive permuted by the
/// 128-byte swizzle that ptx::wgmma_descriptor() expects.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "core/cuda/launch.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND {

/// Floats, or words, in a row of a box: the 128 bytes of the swizzle.
constexpr int kTensorMapRow = 32;

/// Numbers of 16 bits in such a row.
constexpr int kTensorMapHalves = 64;

/// A tiled map of an array with up to four axes, innermost first.
struct TiledMap {
  int rank;                             ///< Axes, 2 to 4.
  std::array<std::int64_t, 4> extents;  ///< Of the array.
  std::array<std::int64_t, 4>
      strides;                ///< Numbers between neighbours; [0] is 1, others of 16 bytes.
  std::array<int, 4> box;     ///< What one copy brings; [0] is 128 bytes at most.
  bool keeps_floats = false;  ///< They are not rounded to TF32; for all that is stored.
  int swizzle = 128;          ///< Bytes of its rows, of 64 or 128; box[0] is as long at most.
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
/// Of float16.
CUtensorMap tensor_map(const TiledMap& map, const Half* data);
/// Of bfloat16.
CUtensorMap tensor_map(const TiledMap& map, const BFloat16* data);
/// Of words of two numbers of 16 bits, of which the engine need not know what they are.
CUtensorMap tensor_map(const TiledMap& map, const std::uint32_t* data);
/// @throws DeviceError if the driver refuses.
CUtensorMap tensor_map(const Im2colMap& map, const float* data);
/// Of words; C counts these.
CUtensorMap tensor_map(const Im2colMap& map, const std::uint32_t* data);

}  // namespace convladder::BACKEND
