/// @file tensor_map.hpp
/// @brief Tensor maps: descriptors of arrays for the Tensor Memory Accelerator (TMA), which give
/// the array and the box to copy.
///
/// A kernel takes a CUtensorMap by value, as `const __grid_constant__ CUtensorMap`, and passes its
/// address to ptx::tma_load() or ptx::tma_load_im2col(). Both modes support floats that TMA rounds
/// to TF32 and 32-bit words that it copies unchanged; the tiled mode also supports unrounded floats
/// and 16-bit elements. The rows of a box have 128 bytes and are permuted by the 128-byte swizzle
/// that ptx::wgmma_descriptor() expects.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "core/cuda/launch.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND {

/// Floats, or words, per row of a box: the 128 bytes of the swizzle.
constexpr int kTensorMapRow = 32;

/// 16-bit elements per row of a box.
constexpr int kTensorMapHalves = 64;

/// A tiled map of an array with up to four axes, innermost first.
struct TiledMap {
  int rank;                             ///< Axes, 2 to 4.
  std::array<std::int64_t, 4> extents;  ///< Of the array.
  std::array<std::int64_t, 4> strides;  ///< Strides in elements; [0] is 1, the others are multiples
                                        ///< of 16 bytes.
  std::array<int, 4> box;               ///< Extents of a box; [0] is 128 bytes at most.
  bool keeps_floats = false;            ///< Not rounded to TF32; required for stores.
  int swizzle = 128;                    ///< Bytes per row, of 64 or 128; box[0] is at most as long.
};

/// An im2col map of an array [N][H][W][C].
struct Im2colMap {
  int N, H, W, C;          ///< C is a multiple of 4.
  int lower_h, lower_w;    ///< Start of the first windows: minus the padding.
  int upper_h, upper_w;    ///< The most by which windows start beyond the last row and column.
  int stride_h, stride_w;  ///< Stride of the windows, 1 to 8.
  int pixels;              ///< Pixels per load, up to 1024.
};

/// @throws DeviceError if the driver refuses.
CUtensorMap tensor_map(const TiledMap& map, const float* data);
/// For fp16.
CUtensorMap tensor_map(const TiledMap& map, const Half* data);
/// For bf16.
CUtensorMap tensor_map(const TiledMap& map, const BFloat16* data);
/// For 32-bit words of two 16-bit elements, whose type is irrelevant for TMA.
CUtensorMap tensor_map(const TiledMap& map, const std::uint32_t* data);
/// @throws DeviceError if the driver refuses.
CUtensorMap tensor_map(const Im2colMap& map, const float* data);
/// For words; C counts words.
CUtensorMap tensor_map(const Im2colMap& map, const std::uint32_t* data);

}  // namespace convladder::BACKEND
