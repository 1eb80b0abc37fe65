/// @file input_values.hpp
/// @brief What the values of a problem's inputs must be, beside types and shapes. Programs check it
/// before they run a rung: rungs index memory by sites and rows without a look.
#pragma once

#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The inputs of this problem that require_valid_values() reads; of most problems none.
std::vector<std::string> restricted_inputs(const Ladder& ladder, const Problem& problem);

/// Checks the values of those inputs, unless one of them is not given:
///
/// - `coords` of `rulebook`, `sparse_to_dense` and `sparse_global_pool`: rows inside of batch and
///   shape, no site twice;
/// - `argmax` of `sparse_max_pool_dgrad`, beside `nbr_back`: an input row that its output row
///   meets; -1 if that meets none, and only then;
/// - `x` of `fft` over FftRing::mersenne: whole numbers from -2^24 to 2^24.
///
/// @param inputs of the problem's types and shapes
/// @throws BadInput that names array, row or element, value and limit
void require_valid_values(const Ladder& ladder, const Problem& problem, const Arrays& inputs);

/// The numbers of an input, rounded to the type that its problem has. Numbers of 8 bits saturate,
/// as the hardware's conversion does. @throws BadInput for a finite number that would become
/// infinite
Array rounded_input(const ArraySpec& spec, const Array& given);

}  // namespace convladder
