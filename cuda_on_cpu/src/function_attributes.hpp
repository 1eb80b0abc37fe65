/// @file
/// @brief The shared memory of a kernel: what it declares, and what cudaFuncSetAttribute has
/// allowed.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

/// Bytes of dynamic shared memory that cudaFuncSetAttribute has allowed `function`; 0 if it was not
/// called.
std::size_t allowed_dynamic_shared(const void* function);
/// What a launch of `function` may ask for.
std::size_t max_dynamic_shared(const void* function);
/// As static_shared_bytes(), which is asked once.
std::size_t declared_shared(const void* function);
void forget_function_attributes();

}  // namespace cuda_on_cpu
