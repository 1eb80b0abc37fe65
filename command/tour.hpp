/// @file tour.hpp
/// @brief `compare` without a ladder: runs every rung of every ladder, and draws pictures.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// @return an ExitStatus. @throws BadInput
int tour(const Options& options);

}  // namespace convladder::command
