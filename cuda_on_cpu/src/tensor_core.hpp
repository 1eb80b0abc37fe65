/// @file
/// @brief The arithmetic of tensor cores: operands in TF32, fp16, bf16 or FP8 (e4m3), accumulators
/// in FP32.
#pragma once

#include <bit>
#include <cstdint>
#include <cuda_on_cpu/ptx.hpp>

#include "sanitizer.hpp"

// For the multiplications, which take most of the time. They run twice as fast with AVX2, which is
// selected when the program starts, before sanitizers are initialised. Sanitizers would make these
// functions several times slower, without finding anything.
#if defined(CUDA_ON_CPU_ASAN) || defined(__SANITIZE_THREAD__)
#define CUDA_ON_CPU_HOT_LOOP __attribute__((no_sanitize("address", "undefined")))
#elif defined(__x86_64__) && defined(__gnu_linux__)
#define CUDA_ON_CPU_HOT_LOOP [[gnu::target_clones("avx2", "default")]]
#else
#define CUDA_ON_CPU_HOT_LOOP
#endif

namespace cuda_on_cpu {

using ptx::FactorType;

/// Elements of this type per register, the first one in its low bits.
constexpr unsigned per_register(FactorType type) {
  return type == FactorType::tf32 ? 1 : type == FactorType::e4m3 ? 4 : 2;
}

/// The value of a register with a TF32 number. The hardware ignores its 13 low bits.
inline double value_of_tf32(std::uint32_t tf32) { return std::bit_cast<float>(tf32 & ~0x1fffu); }

/// The value of an fp16 number: 5 exponent bits, 10 fraction bits.
inline double value_of_f16(std::uint32_t f16) {
  const std::uint32_t magnitude = (f16 & 0x7fffu) << 13, sign = (f16 & 0x8000u) << 16;
  const bool is_finite = magnitude < 0x0f800000u;
  // Interpreted as a float, its exponent is 112 too small; the multiplication corrects this, also
  // for subnormal numbers.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t bits =
      is_finite ? std::bit_cast<std::uint32_t>(scaled) : magnitude | 0x7f800000u;
  return std::bit_cast<float>(bits | sign);
}

/// The value of a bf16 number: the upper half of a float.
inline double value_of_bf16(std::uint32_t bf16) { return std::bit_cast<float>(bf16 << 16); }

/// The value of an e4m3 number: 4 exponent bits, 3 fraction bits, no infinity.
inline double value_of_e4m3(std::uint32_t e4m3) {
  const std::uint32_t magnitude = e4m3 & 0x7fu, sign = (e4m3 & 0x80u) << 24;
  // As for fp16, with an exponent that is 120 too small.
  const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  const std::uint32_t bits =
      magnitude == 0x7fu ? 0x7fffffffu : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

/// The values of the elements in a register.
template <FactorType kType>
void unpack(std::uint32_t bits, double* values) {
  if constexpr (kType == FactorType::tf32) {
    values[0] = value_of_tf32(bits);
  } else if constexpr (kType == FactorType::f16) {
    values[0] = value_of_f16(bits & 0xffffu);
    values[1] = value_of_f16(bits >> 16);
  } else if constexpr (kType == FactorType::e4m3) {
    for (unsigned i = 0; i < 4; ++i) values[i] = value_of_e4m3(bits >> 8 * i & 0xffu);
  } else {
    values[0] = value_of_bf16(bits & 0xffffu);
    values[1] = value_of_bf16(bits >> 16);
  }
}

/// Zero if all elements in a register are zero.
template <FactorType kType>
constexpr std::uint32_t magnitudes(std::uint32_t bits) {
  return bits & (kType == FactorType::tf32 ? 0x7fffe000u : 0x7fff7fffu);
}

/// Whether all elements in a register are finite.
template <FactorType kType>
constexpr bool are_finite(std::uint32_t bits) {
  constexpr std::uint32_t kLow = kType == FactorType::f16 ? 0x7c00u : 0x7f80u;
  constexpr std::uint32_t kHigh = kType == FactorType::f16 ? kLow << 16 : 0x7f800000u;
  return (bits & kHigh) != kHigh && (kType == FactorType::tf32 || (bits & kLow) != kLow);
}

constexpr unsigned kColumns = 4;                                ///< elements that are multiplied at
                                                                ///< a time
using Floats [[gnu::vector_size(4 * kColumns)]] = float;        ///< a row of them
using Doubles [[gnu::vector_size(8 * kColumns)]] = double;      ///< likewise
using Ints [[gnu::vector_size(4 * kColumns)]] = std::int32_t;   ///< likewise
using Longs [[gnu::vector_size(8 * kColumns)]] = std::int64_t;  ///< likewise

/// Whether each accumulator is unchanged when a zero of either sign is added: not for -0, and not
/// for NaNs, whose bits could change.
[[gnu::always_inline]] inline bool zeros_leave(const Floats* sums, unsigned count) {
  Ints other = {};  // -1 if an accumulator fails the test
  for (unsigned i = 0; i < count; ++i) {
    const Ints bits = Ints(sums[i]);
    other |= (bits == INT32_MIN) | ((bits & 0x7f800000) == 0x7f800000);
  }
  return (other[0] | other[1] | other[2] | other[3]) == 0;
}

/// The floats next to `sums` in the direction of zero.
[[gnu::always_inline]] inline void round_towards_zero(const Doubles& sums, Floats* to) {
  const auto part = __builtin_convertvector(sums, Floats);
  const auto nearest = __builtin_convertvector(part, Doubles);
  constexpr std::int64_t kNoSign = INT64_MAX;
  // Numbers without a sign are ordered like their bits.
  const Longs is_further = (Longs(nearest) & kNoSign) > (Longs(sums) & kNoSign);
  const Ints is_finite = (Ints(part) & INT32_MAX) != 0x7f800000;
  // True is -1. Subtracting one from the bit pattern is one step towards zero; an overflow remains
  // infinite.
  *to = Floats(Ints(part) + (__builtin_convertvector(is_further, Ints) & is_finite));
}

}  // namespace cuda_on_cpu
