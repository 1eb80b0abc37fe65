/// @file samples.hpp
/// @brief Single elements of a reference, for problems that are too large to compute it whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// What is right for one element.
struct ExpectedElement {
  double value = 0;      ///< As the formula gives it.
  double magnitude = 0;  ///< The sum of the |products|.
};

/// Elements of the output `name` of a problem: of reference()'s output of that name,
/// those at `places` (row-major offsets), each computed by itself.
/// @throws std::logic_error for the ladders that have no such function: tile_map, rulebook, and the
/// sparse ones that are no convolutions
std::vector<ExpectedElement> reference_at(const std::string& ladder, const Problem& problem,
                                          const Arrays& inputs, const std::string& name,
                                          std::span<const std::int64_t> places);

}  // namespace convladder
