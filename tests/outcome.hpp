/// @file outcome.hpp
/// @brief What became of each test, beyond passed and failed: skipped, and without any assertion.
#pragma once

#include <string>

namespace convladder::testing {

/// Ends the current test case as skipped. Return from it afterwards, without an assertion.
void skip(const std::string& reason);

/// As skip() with a reason that begins with "no GPU"; with CONVLADDER_REQUIRE_GPU=1 a failure.
void skip_for_want_of_a_gpu();

/// Prints "N passed, N failed, N skipped". @returns the exit status: 0 if something passed and
/// nothing failed, 77 (CTest's mark of a skipped test) if all was skipped, else 1.
int conclude();

}  // namespace convladder::testing
