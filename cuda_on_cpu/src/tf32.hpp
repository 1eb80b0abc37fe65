/// @file
/// @brief The arithmetic of tensor cores in TF32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuda_on_cpu {

/// The value of a register that holds a TF32 number. Its 13 low bits do not exist for the hardware.
inline double value_of_tf32(std::uint32_t tf32) { return std::bit_cast<float>(tf32 & ~0x1fffu); }

/// The float next to `value` that is not further from zero.
inline float rounded_towards_zero(double value) {
  const auto nearest = static_cast<float>(value);
  const bool is_further = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  // One bit pattern less is one step towards zero; an overflow stays infinite.
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  return std::bit_cast<float>(bits - (is_further && (bits & 0x7fffffffu) != 0x7f800000u));
}

}  // namespace cuda_on_cpu
