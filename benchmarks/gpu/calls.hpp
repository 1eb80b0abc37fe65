/// @file calls.hpp
/// @brief Counts what rungs ask of CUDA: the linker leads their calls through counters (`--wrap`).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace convladder::benchmarks {

/// A launch of a kernel.
struct KernelLaunch {
  const void* kernel = nullptr;
  dim3 grid = {}, block = {};
  std::size_t shared_bytes = 0;  ///< Dynamic.
  /// In the whole grid; 0 where there is no kernel.
  double threads() const {
    if (kernel == nullptr) return 0;
    return 1.0 * grid.x * grid.y * grid.z * block.x * block.y * block.z;
  }
};

/// Since the program began.
struct Calls {
  long launches = 0;  ///< Kernels, and copies and fills on a stream.
  long waits = 0;     ///< Calls that return only when the GPU is done.
};

/// Forgets which launch was the largest.
void forget_largest_launch();

/// That with the most threads since then; without a kernel if there was none.
KernelLaunch largest_launch();

/// So far.
Calls calls();

}  // namespace convladder::benchmarks
