/// @file device_attribute.hpp
/// @brief What the current device has: its size, and instructions that older ones have not.
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

/// Bytes of shared memory that a block may have at most, if it asks for them.
inline std::size_t max_shared_bytes() {
  return static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

/// `count` blocks, which are enough for a large GPU. On a machine that tests made small
/// (max_strided_blocks) fewer are, so that small problems meet what is made for large ones.
inline std::int64_t enough_blocks(std::int64_t count) {
  return std::min(count, max_strided_blocks);
}

/// Of the current device, as the number in `sm_90`: 75 for Turing, 80 for Ampere, 90 for Hopper and
/// for cuda_on_cpu's model of a device; 0 where there is none.
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
