/// @file fast_division.hpp
/// @brief Division by a divisor that is known before the launch, as a multiplication.
#pragma once

#include <cstdint>

#include "core/arithmetic.hpp"

namespace convladder {

/// Divides by a fixed divisor. GPUs have no integer division instruction: the compiler emits some
/// 20 instructions unless it knows the divisor. Here the host computes a multiplier m and a shift s
/// once, with n / d = (n + (n * m >> 32)) >> s for every n in range: three instructions.
///
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, figure
/// 4.1; with n below 2^31 the sum does not overflow.)
class FastDivision {
 public:
  /// Division by 1.
  constexpr FastDivision() = default;

  /// @param divisor 1 to 2^31 - 1
  HOST_DEVICE explicit constexpr FastDivision(int divisor)
      : divisor_(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << shift_;  // the first one that is not below d
    multiplier_ = static_cast<std::uint32_t>(((power - divisor_) << 32) / divisor_ + 1);
  }

  /// n / divisor. @param n 0 to 2^31 - 1
  HOST_DEVICE constexpr int quotient(int n) const {
    const auto dividend = static_cast<std::uint32_t>(n);
    const auto high = static_cast<std::uint32_t>(std::uint64_t{dividend} * multiplier_ >> 32);
    return static_cast<int>((high + dividend) >> shift_);
  }

  /// n % divisor from the quotient of n. @param n 0 to 2^31 - 1
  HOST_DEVICE constexpr int remainder(int n, int quotient) const {
    return n - quotient * static_cast<int>(divisor_);
  }

 private:
  std::uint32_t divisor_ = 1, multiplier_ = 1;
  int shift_ = 0;  ///< ceil(log2(divisor_))
};

}  // namespace convladder
