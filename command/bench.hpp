/// @file bench.hpp
/// @brief `bench`: times rungs beside vendor libraries.
#pragma once

#include "command/options.hpp"

namespace convladder::command {

/// Times the selected rungs on the selected problems. Without a GPU, prints the newest committed
/// run. The function has C linkage because program.cpp looks it up in its library by name.
/// @return an ExitStatus. @throws BadInput
extern "C" int convladder_bench(const Options& options);

}  // namespace convladder::command
