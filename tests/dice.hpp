/// @file dice.hpp
/// @brief Random numbers for test problems.
#pragma once

#include <cstdint>
#include <random>

namespace convladder::testing {

/// Draws numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 7) {}
  /// From [low, high].
  int operator()(int low, int high) {
    const auto range = static_cast<std::uint64_t>(std::int64_t{high} - low + 1);
    return low + static_cast<int>((engine_() >> 32) * range >> 32);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace convladder::testing
