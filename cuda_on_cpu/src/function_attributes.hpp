/// @file
/// @brief What cudaFuncSetAttribute has set.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

/// Bytes of dynamic shared memory that a launch of `function` may ask for.
std::size_t max_dynamic_shared(const void* function);
void forget_function_attributes();

}  // namespace cuda_on_cpu
