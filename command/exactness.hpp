/// @file exactness.hpp
/// @brief Whether a problem's sums are exact in float, in whatever order they are added up.
#pragma once

#include <string>

#include "core/problem.hpp"
#include "oracle/data.hpp"

namespace convladder::command {

/// True if no partial sum of any output needs rounding, so that every rung must give the same bits.
///
/// It holds for integers whose sums stay below 2^24, and likewise for multiples of any power of
/// two: all products are multiples of one unit, and no sum reaches 2^24 units.
bool sums_are_exact(const std::string& ladder, const Problem& problem, const Arrays& inputs);

}  // namespace convladder::command
