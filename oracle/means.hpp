/// @file means.hpp
/// @brief Means of an output's terms, as average poolings have them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

/// Divides the sums of row i of an output [rows][C] by counts[i]; a count of 0 leaves 0.
///
/// A mean is rounded to float once: where a sum is exact, that is what every rung's division must
/// give, bit for bit, and the step over double makes no difference (Figueroa, "When is double
/// rounding innocuous?", 1995). On other data the mean of n terms has n + 1 roundings: n - 1 of the
/// sum, one of the rung's division, one of this. The bounds on a sum of n terms leave room for
/// four more.
///
/// Where the sum of the |terms| leaves float's range, it stays undivided as the magnitude: a rung's
/// sum in float may be infinite there, which require_float_range() refuses.
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
