/// @file bench.hpp
/// @brief `bench`: the times of rungs beside those of vendor libraries.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Times the chosen rungs on the chosen problems; without a GPU: shows the newest committed run.
/// With C linkage: program.cpp finds it in its library by name.
/// @return an ExitStatus. @throws BadInput
extern "C" int convladder_bench(const Options& options);

}  // namespace convladder::command
