/// @file found_problems.hpp
/// @brief Problems on which a rung once failed.
#pragma once

#include <string>
#include <vector>

#include "tests/problems.hpp"

namespace convladder::testing {

/// The problems of a ladder in tests/found_problems/problems.txt, which are command lines.
/// @throws BadInput if a line is none
std::vector<TestProblem> found_problems(const std::string& ladder);

}  // namespace convladder::testing
