/// @file fuzz.hpp
/// @brief `fuzz [LADDER]`: problems drawn at random, on both sides of whatever a rung chooses.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Draws problems until the time is over, and compares the chosen rungs on them. Of each choice
/// that a rung makes (Implementation::choice, its tile, what it declines) it looks for problems on
/// both sides. What fails is made as simple as it can be while it still fails.
///
/// The comparisons run in a process of their own: if a rung ends or blocks it, that is a failure
/// like others, and the search goes on.
/// With C linkage: program.cpp finds it in its library by name.
/// @return an ExitStatus: kSomeDiffer if anything failed. @throws BadInput
extern "C" int convladder_fuzz(const Options& options);

}  // namespace convladder::command
