/// @file
/// @brief From a kernel's address to its name.
#pragma once

#include <string>

namespace cuda_on_cpu {

/// The demangled name of the function at `address`, without its parameters; "kernel at 0x..." if
/// the executable was stripped of its symbols.
std::string function_name(const void* address);

}  // namespace cuda_on_cpu
