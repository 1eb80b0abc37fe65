/// @file fuzz.hpp
/// @brief `fuzz [LADDER]`: random problems, on both sides of every choice that a rung makes.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Draws problems until the time limit, and compares the selected rungs on them. For each choice of
/// a rung (Implementation::choice, its tile, the problems that it does not support) it searches for
/// problems on both sides of the boundary. A failing problem is simplified for as long as it still
/// fails.
///
/// The comparisons run in a separate process: if a rung terminates or blocks that process, this
/// counts as a failure, and the search continues. The function has C linkage because program.cpp
/// looks it up in its library by name.
/// @return an ExitStatus: kSomeDiffer if anything failed. @throws BadInput
extern "C" int convladder_fuzz(const Options& options);

}  // namespace convladder::command
