/// @file float8.hpp
/// @brief An 8-bit floating-point type as its bits: storage, not arithmetic.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/half.hpp"

namespace convladder {

/// "E4M3" of the Open Compute Project: 4 exponent bits, 3 fraction bits; up to 448, in steps of
/// 2^-9 near zero. There is no infinity. NaN is one pattern of either sign: all bits except the
/// sign are set.
struct Float8 {
  std::uint8_t bits;  ///< Sign first.
};

/// A float's bits, and back.
HOST_DEVICE inline std::uint32_t bits_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}
/// The float of these bits.
HOST_DEVICE inline float float_of(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// The value, which float represents exactly.
HOST_DEVICE inline float to_float(Float8 value) {
  // As a float scaled by 2^-120, whose exponent has the same distance from the smallest: see Half.
  const std::uint32_t magnitude = value.bits & 0x7fu, sign = (value.bits & 0x80u) << 24;
  const std::uint32_t number = bits_of(float_of(magnitude << 20) * 0x1p120f);
  return float_of((magnitude == 0x7fu ? 0x7fc00000u : number) | sign);
}

/// Numbers beyond 448 and infinities become 448, NaN stays NaN, like the GPU's
/// `cvt.rn.satfinite.e4m3x2.f32`.
template <>
HOST_DEVICE inline Float8 rounded_to<Float8>(float value) {
  constexpr std::uint32_t kLargest = 0x7e, kNan = 0x7f;
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  std::uint32_t nearest = kLargest;
  if (magnitude > 0x7f800000u) {
    nearest = kNan;
  } else if (float_of(magnitude) < 0x1p-6f) {
    // Steps are 2^-9 here, like the last bit of a float at 2^14.
    nearest = bits_of(float_of(magnitude) + 0x1p14f) & 0xfu;
  } else if (float_of(magnitude) < 448) {
    // 20 fraction bits are dropped, and the exponent is lowered by 120.
    nearest = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
  }
  return {static_cast<std::uint8_t>((bits >> 24 & 0x80u) | nearest)};
}

/// Like with_float_type(), for bodies that support Float8, too. @throws std::logic_error for i32
template <class Body>
decltype(auto) with_any_float_type(DType dtype, const Body& body) {
  return dtype == DType::f8 ? body(Float8{}) : with_float_type(dtype, body);
}

/// The type of a GEMM's result for operands of type T: FP8 is too coarse.
template <class T>
using ProductOf = std::conditional_t<std::is_same_v<T, Float8>, float, T>;

}  // namespace convladder
