/// @file
/// @brief The memory that asynchronous copies of kernels may read. This header declares no CUDA
/// names.
#pragma once

#include <cstddef>

namespace cuda_on_cpu::control {

/// Restricts asynchronous copies of kernels to these bytes of the device allocation that contains
/// them: for a test that keeps guard bands of its own in an allocation. For other addresses, this
/// has no effect.
void set_readable(const void* first, std::size_t bytes);

}  // namespace cuda_on_cpu::control
