/// @file means.hpp
/// @brief Means of an output's terms, for average poolings.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

/// Divides the sums of row i of an output [rows][C] by counts[i]; a count of 0 leaves 0.
///
/// A mean is rounded to float once: if a sum is exact, every rung's division must give these bits,
/// and the intermediate double makes no difference (Figueroa, "When is double rounding innocuous?",
/// 1995). On other data the mean of n terms has n + 1 roundings: n - 1 of the sum, one of the
/// rung's division, one of this. The bounds on a sum of n terms leave room for four more.
///
/// If the sum of the |terms| exceeds the range of float, the magnitude stays undivided: a rung's
/// float accumulator may be infinite there, which require_float_range() rejects.
inline void make_means(Expected& sums, const std::vector<std::int64_t>& counts) {
  if (counts.empty()) return;
  const std::size_t C = sums.values.size() / counts.size();
  for (std::size_t i = 0; i < sums.values.size(); ++i) {
    const auto count = static_cast<double>(counts[i / C]);
    if (count == 0) continue;
    sums.values[i] = double{static_cast<float>(sums.values[i] / count)};
    if (sums.magnitude[i] <= double{std::numeric_limits<float>::max()}) sums.magnitude[i] /= count;
  }
}

}  // namespace convladder::oracle
