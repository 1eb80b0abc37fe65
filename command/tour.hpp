/// @file tour.hpp
/// @brief `compare` without a ladder: every rung of every ladder, and pictures.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// @return an ExitStatus. @throws BadInput
int tour(const Options& options);

}  // namespace convladder::command
