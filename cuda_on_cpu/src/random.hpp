/// @file
/// @brief A small random number generator that produces the same numbers on every platform.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

/// SplitMix64 (Steele, Lea, Flood 2014): any seed is suitable, also consecutive ones.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// A number below `bound`.
  unsigned below(unsigned bound) { return static_cast<unsigned>(((next() >> 32) * bound) >> 32); }

 private:
  std::uint64_t state_;
};

}  // namespace cuda_on_cpu
