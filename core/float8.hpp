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

/// The value, which a float always holds.
HOST_DEVICE inline float to_float(Float8 value) {
  // As a float of 2^120 times less, whose exponent is as far from the smallest: see Half.
  const std::uint32_t magnitude = value.bits & 0x7fu, sign = (value.bits & 0x80u) << 24;
  const std::uint32_t scaled = magnitude << 20;
#ifdef __CUDA_ARCH__
  const std::uint32_t number = __float_as_uint(__uint_as_float(scaled) * 0x1p120f);
  return __uint_as_float((magnitude == 0x7fu ? 0x7fc00000u : number) | sign);
#else
  const auto number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(scaled) * 0x1p120f);
  return std::bit_cast<float>((magnitude == 0x7fu ? 0x7fc00000u : number) | sign);
#endif
}

/// Of all numbers beyond 448, and of infinities, 448; of a NaN, a NaN. So does the GPU's
/// `cvt.rn.satfinite.e4m3x2.f32`.
template <>
inline Float8 rounded_to<Float8>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  constexpr std::uint32_t kLargest = 0x7e, kNan = 0x7f;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint8_t>(sign | kNan)};
  if (magnitude >= std::bit_cast<std::uint32_t>(448.0f)) {
    return {static_cast<std::uint8_t>(sign | kLargest)};
  }
  // Added to 2^14, whose last bit is 2^-9, a number is rounded to such steps, as those below 2^-6
  // are. Of larger ones, 20 bits of the fraction go.
  if (magnitude < std::bit_cast<std::uint32_t>(0x1p-6f)) {
    const float steps = std::bit_cast<float>(magnitude) + 0x1p14f;
    return {static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(steps) & 0xfu))};
  }
  const std::uint32_t nearest = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
  return {static_cast<std::uint8_t>(sign | ((nearest >> 20) - (120u << 3)))};
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
