/// @file samples.hpp
/// @brief Single elements of a reference, for problems that are too large to compute all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The right value of one element.
struct ExpectedElement {
  double value = 0;      ///< The value of the formula.
  double magnitude = 0;  ///< The sum of the |products|.
};

/// Elements of the output `name` of a problem: the elements of reference()'s output at `places`
/// (row-major offsets), each computed individually.
/// @throws std::logic_error for the ladders without such a function: tile_map, rulebook, and the
/// sparse ladders that are not convolutions
std::vector<ExpectedElement> reference_at(const std::string& ladder, const Problem& problem,
                                          const Arrays& inputs, const std::string& name,
                                          std::span<const std::int64_t> places);

}  // namespace convladder
