/// @file cooperative.hpp
/// @brief Launches whose whole grid is on the device at once, so that all threads may wait for all.
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Blocks of a kernel, without dynamic shared memory, that the device holds at once. The answer
/// takes microseconds: ask once.
template <class... Parameters>
int resident_blocks(void (*kernel)(Parameters...), int threads) {
  int of_multiprocessor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, threads, 0));
  return of_multiprocessor * multiprocessors();
}

/// As launch(), for a kernel that calls cooperative_groups::this_grid().sync().
/// @throws DeviceError if CUDA refuses the launch: if the grid has more blocks than
/// resident_blocks()
template <class... Parameters, class... Values>
void launch_cooperatively(void (*kernel)(Parameters...), const LaunchConfig& config,
                          Values&&... arguments) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t cuda_config{};
  cuda_config.gridDim = config.grid;
  cuda_config.blockDim = config.block;
  cuda_config.dynamicSmemBytes = config.shared_bytes;
  cuda_config.stream = config.stream;
  cuda_config.attrs = &cooperative;
  cuda_config.numAttrs = 1;
  check(cudaLaunchKernelEx(&cuda_config, kernel, std::forward<Values>(arguments)...),
        config.caller);
}

}  // namespace convladder::BACKEND
