/// @file calls.hpp
/// @brief Counts what rungs ask of CUDA: the linker leads their calls through counters (`--wrap`).
#pragma once

namespace convladder::benchmarks {

/// Since the program began.
struct Calls {
  long launches = 0;  ///< Kernels, and copies and fills on a stream.
  long waits = 0;     ///< Calls that return only when the GPU is done.
};

/// So far.
Calls calls();

}  // namespace convladder::benchmarks
