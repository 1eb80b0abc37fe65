/// @file bench.hpp
/// @brief `bench`: the times of rungs beside those of vendor libraries.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Times the chosen rungs on the chosen problems; without a GPU: shows the newest committed run.
/// @return an ExitStatus. @throws BadInput
int bench(const Options& options);

}  // namespace convladder::command
