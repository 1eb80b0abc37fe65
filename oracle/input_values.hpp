/// @file input_values.hpp
/// @brief The rules for the values of a problem's inputs, in addition to types and shapes. Programs
/// check them before they run a rung, because rungs use sites and rows as indices without a check.
#pragma once

#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The inputs of this problem that require_valid_values() checks; empty for most problems.
std::vector<std::string> restricted_inputs(const Ladder& ladder, const Problem& problem);

/// Checks the values of those inputs, unless one of them is not given:
///
/// - `coords` of `rulebook`, `sparse_to_dense` and `sparse_global_pool`: rows inside of batch and
///   shape, and no duplicates;
/// - `argmax` of `sparse_max_pool_dgrad`, beside `nbr_back`: an input row of its output row; -1 if
///   and only if there is none;
/// - `x` of `fft` over FftRing::mersenne: integers from -2^24 to 2^24.
///
/// @param inputs of the problem's types and shapes
/// @throws BadInput that names array, row or element, value and limit
void require_valid_values(const Ladder& ladder, const Problem& problem, const Arrays& inputs);

/// An input rounded to the type of its problem. FP8 saturates, like the hardware's conversion.
/// @throws BadInput for a finite number that would become infinite
Array rounded_input(const ArraySpec& spec, const Array& given);

}  // namespace convladder
