/// @file
/// @brief For tools that watch a kernel's loads and stores (hooks of -fsanitize=thread, for
/// example): who is running, and what memory is this? Brings in no CUDA names. Cheap,
/// async-signal-safe apart from find_memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu::inspect {

/// The CUDA thread that runs on the calling OS thread.
struct ThreadPosition {
  std::uint64_t block;                           ///< linear index of the block in the grid
  unsigned thread;                               ///< linear index of the thread in its block
  unsigned interval;                             ///< barriers that the block has passed
  unsigned warp() const { return thread / 32; }  ///< its warp in the block
  unsigned lane() const { return thread % 32; }  ///< its lane in the warp
};

/// Whether a kernel's code runs on the calling OS thread; if so, `position` says which thread's.
bool in_kernel(ThreadPosition* position);

/// Bytes of stack that threads of kernels have used, at most, in blocks that the calling OS thread
/// ran, in whole pages; 0 if it ran none. On a GPU, arrays on it would be local memory, which is
/// set aside for every thread that can be resident.
std::size_t deepest_stack();

/// The kinds of memory that an address can be.
enum class MemorySpace { host, device, dynamic_shared, static_shared };

/// What an address is. `base` and `bytes` describe the allocation, block buffer or file range
/// around it; both are 0 for host memory, which includes `__constant__` variables and the threads'
/// own locals.
struct MemoryPlace {
  MemorySpace space;  ///< the kind
  const void* base;   ///< where it begins
  std::size_t bytes;  ///< how long it is
};

/// Looks `address` up as the calling OS thread sees it.
MemoryPlace find_memory(const void* address);

}  // namespace cuda_on_cpu::inspect
