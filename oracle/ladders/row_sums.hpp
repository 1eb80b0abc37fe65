/// @file row_sums.hpp
/// @brief Products by the row: the inner loops of most definitions, which take most of their time.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/reference.hpp"

namespace convladder::oracle {

/// A row of an input: every `step`th element from `first` on.
struct Row {
  std::span<const float> of;  ///< the whole array
  std::int64_t first;
  std::int64_t step = 1;
};

/// Adds to `count` sums, every `step`th from `first` on, a product each: of `factor` and the row's
/// next element.
void accumulate_row(Expected& to, std::int64_t first, std::int64_t step, double factor,
                    const Row& row, std::int64_t count);

/// Adds to sum `i` the products of two rows, one after the other.
void accumulate_products(Expected& to, std::int64_t i, const Row& a, const Row& b,
                         std::int64_t count);

}  // namespace convladder::oracle
