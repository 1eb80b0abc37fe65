/// @file problem_numbers.hpp
/// @brief Numbers that follow from a problem alone, by name, for predictions.
#pragma once

#include <optional>
#include <string>

#include "core/problem.hpp"

namespace convladder::check {

/// One of
/// - problem.p, problem.q: rows and columns of y (conv2d)
/// - problem.bytes_of_col: im2col's and col2im's matrices, of all images
/// - problem.taps_in_the_padding: elements of col that read no element of x
///
/// Empty for a name that does not begin with "problem.". @throws BadInput for another one that does
std::optional<double> number_of(const std::string& name, const Problem& problem);

}  // namespace convladder::check
