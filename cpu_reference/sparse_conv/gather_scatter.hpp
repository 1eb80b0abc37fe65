/// @file gather_scatter.hpp
/// @brief Gathers the rows of a rulebook's pairs, and scatters rows back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/rulebook_problem.hpp"

namespace convladder::cpu_reference::sparse_conv {

/// The columns of `pairs` that hold row numbers.
enum class Side : int { in = 1, out = 2 };

/// Copies row pairs[i][side] of `from` [rows][channels] to row i of `to` [count][channels].
/// @param pairs the first of `count` pairs
inline void gather_rows(const float* from, const std::int32_t* pairs, std::int64_t count, Side side,
                        std::int64_t channels, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = pairs[kPairColumns * i + static_cast<int>(side)];
    std::copy_n(from + row * channels, channels, to + i * channels);
  }
}

/// Adds row i of `from` to row pairs[i][side] of `to` [rows][channels], the reverse of
/// gather_rows().
inline void scatter_add_rows(const float* from, const std::int32_t* pairs, std::int64_t count,
                             Side side, std::int64_t channels, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = pairs[kPairColumns * i + static_cast<int>(side)];
    for (std::int64_t c = 0; c < channels; ++c) to[row * channels + c] += from[i * channels + c];
  }
}

}  // namespace convladder::cpu_reference::sparse_conv
