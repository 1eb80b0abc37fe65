/// @file compute_capability.hpp
/// @brief What the device can do: for rungs that need instructions which older GPUs have not.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Of the current device, as the number in `sm_90`: 75 for Turing, 80 for Ampere, 90 for Hopper and
/// for cuda_on_cpu's model of a device; 0 where there is none.
inline int compute_capability() {
  int device = 0, major = 0, minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

}  // namespace convladder::BACKEND
