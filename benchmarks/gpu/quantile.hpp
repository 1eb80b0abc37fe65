/// @file quantile.hpp
/// @brief Medians and quartiles of times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace convladder::benchmarks {

/// @param sorted in ascending order, at least one number
/// @param q from 0, the least, to 1, the most
inline double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace convladder::benchmarks
