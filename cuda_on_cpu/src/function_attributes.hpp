/// @file
/// @brief The shared memory of a kernel: the declared variables, and the limit set by
/// cudaFuncSetAttribute.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

/// Bytes of dynamic shared memory that cudaFuncSetAttribute has allowed for `function`; 0 if it was
/// not called.
std::size_t allowed_dynamic_shared(const void* function);
/// The most dynamic shared memory of a launch of `function`.
std::size_t max_dynamic_shared(const void* function);
/// Like static_shared_bytes(), but cached.
std::size_t declared_shared(const void* function);
void forget_function_attributes();

}  // namespace cuda_on_cpu
