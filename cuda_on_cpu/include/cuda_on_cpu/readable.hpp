/// @file
/// @brief What asynchronous copies of kernels may read. Brings in no CUDA names.
#pragma once

#include <cstddef>

namespace cuda_on_cpu::control {

/// From now on, asynchronous copies of kernels may read only these bytes of the device allocation
/// that holds them: for a test that keeps guard bands of its own in an allocation. For other
/// addresses, this does nothing.
void set_readable(const void* first, std::size_t bytes);

}  // namespace cuda_on_cpu::control
