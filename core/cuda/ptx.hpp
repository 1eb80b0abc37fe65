/// @file ptx.hpp
/// @brief PTX instructions that CUDA C++ has no function for, as functions named after them.
///
/// This is the only place with inline assembly. Under nvcc each function is one instruction; on the
/// CPU it does what NVIDIA's "PTX ISA" manual (9.0) says, by <cuda_on_cpu/ptx.hpp>, so that the
/// kernels that use it run, and are tested, without a GPU.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>
#include <cstring>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::ptx {

#ifdef __CUDACC__
/// The address of shared memory as PTX takes it: 32 bits, counted in the shared window.
__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
#endif

/// `cp.async` (sm_80): copies kBytes = 4, 8 or 16 from global to shared memory without passing
/// through registers, and without waiting. Only the first `read_bytes` are read; the rest of the
/// destination becomes zero. Both addresses are multiples of kBytes; with read_bytes = 0 the source
/// is not read at all, but must still be aligned. The bytes are there after cp_async_wait_group()
/// for the calling thread, and after a barrier behind it for the other threads.
///
/// 16 bytes go past the L1 cache (`.cg`), fewer through it (`.ca`). Older GPUs (sm_75) copy at
/// once.
template <int kBytes>
__device__ inline void cp_async(void* shared_to, const void* global_from, int read_bytes = kBytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
#ifndef __CUDACC__
  __pipeline_memcpy_async(shared_to, global_from, kBytes,
                          static_cast<std::size_t>(kBytes - read_bytes));
#elif __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared_to)),
                 "l"(__cvta_generic_to_global(global_from)), "r"(read_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared_to)),
                 "l"(__cvta_generic_to_global(global_from)), "n"(kBytes), "r"(read_bytes)
                 : "memory");
  }
#else
  for (int word = 0; word < kBytes / 4; ++word) {
    static_cast<float*>(shared_to)[word] =
        4 * word < read_bytes ? static_cast<const float*>(global_from)[word] : 0.0f;
  }
#endif
}

/// `cp.async.commit_group`: closes this thread's group of copies.
__device__ inline void cp_async_commit_group() {
#ifndef __CUDACC__
  __pipeline_commit();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// `cp.async.wait_group`: waits until all but the last kGroups groups of this thread have landed.
template <int kGroups>
__device__ inline void cp_async_wait_group() {
#ifndef __CUDACC__
  __pipeline_wait_prior(kGroups);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

}  // namespace convladder::BACKEND::ptx
