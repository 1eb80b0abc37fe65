/// @file device_attribute.hpp
/// @brief Properties of the current device: its size, and its instruction set.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// The value of an attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

/// Streaming multiprocessors of the current device.
inline int multiprocessors() { return device_attribute(cudaDevAttrMultiProcessorCount); }

/// The most bytes of shared memory per block, with opt-in.
inline std::size_t max_shared_bytes() {
  return static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

/// `count` blocks, which suffice for a large GPU. In tests with max_strided_blocks it is less, so
/// that small problems exercise the code for large ones.
inline std::int64_t enough_blocks(std::int64_t count) {
  return std::min(count, max_strided_blocks);
}

/// The compute capability of the current device as the number in `sm_90`: 75 for Turing, 80 for
/// Ampere, 90 for Hopper and for cuda_on_cpu's default model; 0 if there is no device.
inline int compute_capability() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) +
         device_attribute(cudaDevAttrComputeCapabilityMinor);
}

}  // namespace convladder::BACKEND
