/// @file
/// @brief `__shared__` variables: thread-local storage of the OS thread that runs the block.
///
/// An OS thread runs one block at a time, so its thread-local storage is that block's shared
/// memory. Each block must find NaN bytes there. The linker lays the thread-local variables of one
/// object file side by side, and CMake's cuda_on_cpu_add_kernels() links a marker object before and
/// after each kernel's object: all between two markers is the static shared memory of one `.cu`
/// file.
///
/// Where a `__shared__` declaration is passed, a hidden *probe* variable beside it says two things:
/// whether this block has filled that file's range already (its value), and which file's range it
/// is (its address). So only blocks that use static shared memory pay for the fill, once a block
/// and a file. Compilers lay the probe behind its variable, so that it is a guard band as well,
/// which is looked at when the block has ended.
#pragma once

#include <cstdint>

// g++ looks at a guard before each use of a variable of a class that has an assignment of its own
// (see vector_types.hpp), though nothing constructs it. The microscope would count that.
#if defined(CUDA_ON_CPU_INSPECT) && !defined(__clang__)
#define CUDA_ON_CPU_UNGUARDED constinit
#else
#define CUDA_ON_CPU_UNGUARDED
#endif

/// Must come first in its declaration, inside a function: `__shared__ float tile[16][17];`.
/// Alignment is asked for with `__align__(n)` behind it.
#define __shared__                                                                           \
  {                                                                                          \
    static constinit thread_local ::cuda_on_cpu::detail::SharedProbe cuda_on_cpu_probe = {}; \
    ::cuda_on_cpu::detail::static_shared_declaration_passed(cuda_on_cpu_probe, __FILE__,     \
                                                            __LINE__);                       \
  }                                                                                          \
  static CUDA_ON_CPU_UNGUARDED thread_local

namespace cuda_on_cpu::detail {

/// Number of the block that this OS thread runs, counted from 1.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::uint64_t block_number;

/// What stands beside a `__shared__` variable. Packed, so that no gap lies before the guard band.
struct [[gnu::packed]] SharedProbe {
  unsigned char guard[120];  ///< Behind the variable: nobody writes there.
  std::uint64_t block;       ///< That filled the range last; 0: none.
};

/// Fills the range that holds `probe` unless this block did so already, then marks the probe.
/// @param file,line of the declaration
void fill_static_shared(SharedProbe& probe, const char* file, int line);

inline void static_shared_declaration_passed(SharedProbe& probe, const char* file, int line) {
  if (probe.block != block_number) [[unlikely]]
    fill_static_shared(probe, file, line);
}

/// Thread-local range between two markers, as an address of the calling OS thread.
using MarkerAddress = unsigned char* (*)();

/// A marker object registers the range that ends with it.
struct StaticSharedRange {
  StaticSharedRange(MarkerAddress begin, MarkerAddress end);
};

}  // namespace cuda_on_cpu::detail
