/// @file bench.hpp
/// @brief `bench`: times beside those of vendor libraries. It comes in a later version.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Says that there are no benchmarks yet. @throws BadInput: what was asked for cannot be done
int bench(const Options& options);

}  // namespace convladder::command
