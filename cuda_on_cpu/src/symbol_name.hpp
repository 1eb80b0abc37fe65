/// @file
/// @brief Information about a kernel from its address: its name and its shared variables.
#pragma once

#include <cstddef>
#include <string>

namespace cuda_on_cpu {

/// The demangled name of the function at `address`, without its parameters; "kernel at 0x..." if
/// the executable was stripped of its symbols.
std::string function_name(const void* address);

/// Bytes of the `__shared__` variables that the function at `address` declares, without those of
/// the functions that it calls; 0 if the executable was stripped of its symbols. Takes
/// milliseconds.
std::size_t static_shared_bytes(const void* address);

}  // namespace cuda_on_cpu
