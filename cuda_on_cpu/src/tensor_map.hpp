/// @file
/// @brief The content of the opaque bytes of a CUtensorMap in the emulator.
#pragma once

#include <array>
#include <cstdint>
#include <cuda_on_cpu/tensor_map.hpp>
#include <type_traits>

namespace cuda_on_cpu {

inline constexpr unsigned kMaxTensorRank = 5;

/// Bytes per element of a supported type; 0 for all others.
constexpr unsigned element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    default: return 0;
  }
}
inline constexpr std::uint64_t kTensorMapMark = 0x70616d20726f736eu;

/// Dimensions, innermost first: for images C, W, H, D, N.
struct TensorMapFields {
  std::uint64_t mark;                                        ///< kTensorMapMark
  std::uint64_t address;                                     ///< of the first element
  std::array<std::uint64_t, kMaxTensorRank - 1> strides;     ///< bytes; of dimensions 1 and above
  std::array<std::uint32_t, kMaxTensorRank> last;            ///< size minus one
  std::array<std::uint16_t, kMaxTensorRank> box;             ///< tiled; elements
  std::array<std::uint8_t, kMaxTensorRank> element_strides;  ///< 1 to 8
  std::array<std::int16_t, kMaxTensorRank - 2> lower;        ///< im2col; by dimension, W first
  std::array<std::int16_t, kMaxTensorRank - 2> upper;
  std::uint16_t channels;  ///< im2col; channels per pixel
  std::uint16_t pixels;    ///< im2col; pixels per column
  std::uint8_t type;       ///< CUtensorMapDataType
  std::uint8_t swizzle;    ///< CUtensorMapSwizzle
  std::uint8_t nan_fill;   ///< elements outside of the array become NaN instead of zero
  std::uint8_t im2col;
  std::uint8_t rank;
};
static_assert(sizeof(TensorMapFields) <= sizeof(CUtensorMap));
static_assert(std::is_trivially_copyable_v<TensorMapFields>);

}  // namespace cuda_on_cpu
