/// @file early_launch.hpp
/// @brief Programmatic dependent launch (PDL): launches that start before the preceding kernel has
/// ended (CUDA C++ Programming Guide, "Programmatic Dependent Launch").
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Like launch(), but blocks may start as soon as all blocks of the preceding kernel have called
/// let_next_kernel_begin() or ended. They execute the part that does not depend on it, and then
/// call wait_for_kernel_before(). The launch and the prologue of one kernel thus overlap with the
/// end of the other. On the CPU, and before compute capability 9.0, kernels run one after the
/// other.
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

/// Returns when the preceding kernel has ended and its writes are visible; at once in a kernel that
/// was launched by launch().
__device__ inline void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// From here on, this block does not delay a kernel that is launched by launch_early().
__device__ inline void let_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace convladder::BACKEND
