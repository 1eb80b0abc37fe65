/// @file
/// @brief `__shared__` variables: thread-local storage of the OS thread that runs the block.
///
/// An OS thread runs one block at a time, so its thread-local storage serves as that block's shared
/// memory, which must contain NaN bytes at the start of each block. The linker places the
/// thread-local variables of one object file contiguously, and CMake's cuda_on_cpu_add_kernels()
/// links a marker object before and after each kernel's object: everything between two markers is
/// the static shared memory of one `.cu` file.
///
/// Beside each `__shared__` declaration is a hidden *probe* variable. Its value tells whether this
/// block has already filled that file's range, and its address identifies the range. Only blocks
/// that use static shared memory pay for the fill, once per block and file. Compilers place the
/// probe after its variable, so it also serves as a guard band, which is checked when the block has
/// ended.
#pragma once

#include <cstdint>

// g++ tests a guard before each use of a variable whose class has a user-defined assignment (see
// vector_types.hpp), although no constructor runs. The microscope would count these tests.
#if defined(CUDA_ON_CPU_INSPECT) && !defined(__clang__)
#define CUDA_ON_CPU_UNGUARDED constinit
#else
#define CUDA_ON_CPU_UNGUARDED
#endif

/// Must be the first word of a declaration inside a function: `__shared__ float tile[16][17];`. An
/// alignment is given by `__align__(n)` after it.
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

/// The probe beside a `__shared__` variable. It is packed, so that there is no gap before the guard
/// band.
struct [[gnu::packed]] SharedProbe {
  unsigned char guard[120];  ///< The memory after the variable, which no kernel may write.
  std::uint64_t block;       ///< The block that last filled the range; 0: none.
};

/// Fills the range that contains `probe` unless this block has already done so, then marks the
/// probe.
/// @param file,line of the declaration
void fill_static_shared(SharedProbe& probe, const char* file, int line);

inline void static_shared_declaration_passed(SharedProbe& probe, const char* file, int line) {
  if (probe.block != block_number) [[unlikely]]
    fill_static_shared(probe, file, line);
}

/// A thread-local range between two markers, as an address of the calling OS thread.
using MarkerAddress = unsigned char* (*)();

/// A marker object registers the range that ends at it.
struct StaticSharedRange {
  StaticSharedRange(MarkerAddress begin, MarkerAddress end);
};

}  // namespace cuda_on_cpu::detail
