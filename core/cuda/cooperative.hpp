/// @file cooperative.hpp
/// @brief Launches whose whole grid is resident, so that all threads can wait for all others.
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#ifndef __CUDACC__
#include <cuda_on_cpu/device_models.hpp>
#endif

namespace convladder::BACKEND {

/// The number of blocks of a kernel, without dynamic shared memory, that can be resident on the
/// device. The query takes microseconds: call it once.
template <class... Parameters>
int resident_blocks(void (*kernel)(Parameters...), int threads) {
  int of_multiprocessor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, threads, 0));
  const int resident = of_multiprocessor * multiprocessors();
#ifdef __CUDACC__
  return resident;
#else
  return std::min(resident, cuda_on_cpu::control::most_waiting_blocks(threads));
#endif
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
  launch_with(&cooperative, kernel, config, std::forward<Values>(arguments)...);
}

}  // namespace convladder::BACKEND
