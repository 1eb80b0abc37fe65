/// @file list.hpp
/// @brief `list`: prints the rungs of every ladder.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// @return an ExitStatus. @throws BadInput
int list(const Options& options);

}  // namespace convladder::command
