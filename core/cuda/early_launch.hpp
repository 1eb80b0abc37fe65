/// @file early_launch.hpp
/// @brief Launches that begin before the kernel before has ended (CUDA C++ Programming Guide,
/// "Programmatic Dependent Launch").
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// As launch(), but blocks may begin as soon as all blocks of the kernel before have called
/// let_next_kernel_begin() or ended. They do what does not depend on it, and then call
/// wait_for_kernel_before(). So the launch and the beginning of one kernel lie beside the end of
/// the other. On the CPU, and before compute capability 9.0, kernels come one after the other.
template <class... Parameters, class... Values>
void launch_early(void (*kernel)(Parameters...), const LaunchConfig& config,
                  Values&&... arguments) {
#ifdef __CUDACC__
  if (compute_capability() < 90) {
    launch(kernel, config, std::forward<Values>(arguments)...);
    return;
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  launch_with(&early, kernel, config, std::forward<Values>(arguments)...);
#else
  launch(kernel, config, std::forward<Values>(arguments)...);
#endif
}

/// Ends when the kernel before has ended, and what it has written can be read. At once in a kernel
/// that was launched by launch().
__device__ inline void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// From here on, this block does not keep a kernel that launch_early() launches from beginning.
__device__ inline void let_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace convladder::BACKEND
