/// @file half.hpp
/// @brief The two 16-bit floating-point types as their bits: storage, not arithmetic.
///
/// Rungs multiply them on tensor cores, which take them directly from memory, and accumulate in
/// float. All other code converts them first.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>

#include "core/arithmetic.hpp"
#include "core/types.hpp"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace convladder {

/// IEEE 754 binary16: 5 exponent bits, 10 fraction bits; up to 65504.
struct Half {
  std::uint16_t bits;  ///< Sign first.
};

/// The upper half of a float: 8 exponent bits, 7 fraction bits.
struct BFloat16 {
  std::uint16_t bits;  ///< Sign first.
};

/// The value, unchanged.
HOST_DEVICE inline float to_float(float value) { return value; }
/// The value, which float represents exactly.
HOST_DEVICE inline float to_float(Half value) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(value.bits));
#else
  // As a float scaled by 2^-112, whose exponent has the same distance from the smallest. The
  // multiplication that follows is exact and also normalises subnormal numbers. The compiler would
  // call a function instead.
  const std::uint32_t magnitude = (value.bits & 0x7fffu) << 13, sign = (value.bits & 0x8000u) << 16;
  if (magnitude < 0x7c00u << 13) {
    const float number = std::bit_cast<float>(magnitude) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) | sign);
  }
  const std::uint32_t quiet = magnitude == 0x7c00u << 13 ? 0u : 0x400000u;  // NaN, not infinity
  return std::bit_cast<float>(magnitude | 0x7f800000u | quiet | sign);
#endif
}
/// The value, which float represents exactly.
HOST_DEVICE inline float to_float(BFloat16 value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16;
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// The nearest value of type T, ties to even.
template <class T>
HOST_DEVICE T rounded_to(float value);

/// The number itself.
template <>
HOST_DEVICE inline float rounded_to<float>(float value) {
  return value;
}
/// Numbers from 65520 on become infinity.
template <>
HOST_DEVICE inline Half rounded_to<Half>(float value) {
#ifdef __CUDACC__
  return {__half_as_ushort(__float2half_rn(value))};
#else
  return {std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))};
#endif
}
/// A NaN becomes the NaN that a GPU produces.
template <>
HOST_DEVICE inline BFloat16 rounded_to<BFloat16>(float value) {
#ifdef __CUDACC__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};  // the NaN that a GPU produces
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
#endif
}

/// Calls body(T{}) with the C++ type of a floating-point DType. @throws std::logic_error for i32,
/// and for f8, for which there is with_any_float_type()
template <class Body>
decltype(auto) with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32: return body(float{});
    case DType::f16: return body(Half{});
    case DType::bf16: return body(BFloat16{});
    default: throw std::logic_error("int32, or of 8 bits, which few bodies know");
  }
}

/// Like with_float_type(), for bodies that support the two 16-bit types only. @throws
/// std::logic_error for the others
template <class Body>
decltype(auto) with_half_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f16: return body(Half{});
    case DType::bf16: return body(BFloat16{});
    default: throw std::logic_error("a type of other than 16 bits");
  }
}

}  // namespace convladder
