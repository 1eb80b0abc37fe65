/// @file float8.hpp
/// @brief A floating-point type of 8 bits, as its bits: storage, not arithmetic.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/half.hpp"

namespace convladder {

/// "E4M3" of the Open Compute Project: 4 bits of exponent, 3 of fraction; up to 448, in steps of
/// 2^-9 near zero. There is no infinity. NaN is one pattern of either sign: all bits but the sign.
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

/// The value, which a float always holds.
HOST_DEVICE inline float to_float(Float8 value) {
  // As a float of 2^120 times less, whose exponent is as far from the smallest: see Half.
  const std::uint32_t magnitude = value.bits & 0x7fu, sign = (value.bits & 0x80u) << 24;
  const std::uint32_t number = bits_of(float_of(magnitude << 20) * 0x1p120f);
  return float_of((magnitude == 0x7fu ? 0x7fc00000u : number) | sign);
}

/// Of all numbers beyond 448, and of infinities, 448; of a NaN, a NaN. So does the GPU's
/// `cvt.rn.satfinite.e4m3x2.f32`.
template <>
HOST_DEVICE inline Float8 rounded_to<Float8>(float value) {
  constexpr std::uint32_t kLargest = 0x7e, kNan = 0x7f;
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  std::uint32_t nearest = kLargest;
  if (magnitude > 0x7f800000u) {
    nearest = kNan;
  } else if (float_of(magnitude) < 0x1p-6f) {
    // Steps are 2^-9 here, and the last bit of a float from 2^14 on is that.
    nearest = bits_of(float_of(magnitude) + 0x1p14f) & 0xfu;
  } else if (float_of(magnitude) < 448) {
    // 20 bits of the fraction go, and an exponent is 120 less.
    nearest = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
  }
  return {static_cast<std::uint8_t>((bits >> 24 & 0x80u) | nearest)};
}

/// As with_float_type(), for bodies that know Float8, too. @throws std::logic_error for i32
template <class Body>
decltype(auto) with_any_float_type(DType dtype, const Body& body) {
  return dtype == DType::f8 ? body(Float8{}) : with_float_type(dtype, body);
}

/// The type of a product's result, where its factors are of T: numbers of 8 bits are too coarse.
template <class T>
using ProductOf = std::conditional_t<std::is_same_v<T, Float8>, float, T>;

}  // namespace convladder
