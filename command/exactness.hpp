/// @file exactness.hpp
/// @brief Whether the sums of a problem are exact in float for every order of summation.
#pragma once

#include <string>

#include "core/problem.hpp"
#include "oracle/data.hpp"

namespace convladder::command {

/// True if no partial sum of any output is rounded, so that every rung must produce identical bits.
///
/// This holds for integers whose sums stay below 2^24, and for multiples of any power of two: all
/// products are multiples of one unit, and no sum reaches 2^24 units.
bool sums_are_exact(const std::string& ladder, const Problem& problem, const Arrays& inputs);

}  // namespace convladder::command
