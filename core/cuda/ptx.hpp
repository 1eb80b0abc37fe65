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
#ifndef __CUDACC__
#include <cuda_on_cpu/ptx.hpp>
#endif

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

#ifndef __CUDACC__
/// `cvt.rna.tf32.f32`: see to_tf32() below.
__device__ inline std::uint32_t to_tf32(float value) {
  return ::cuda_on_cpu::ptx::cvt_rna_tf32(value);
}
using ::cuda_on_cpu::ptx::ldmatrix_x2;
using ::cuda_on_cpu::ptx::ldmatrix_x4;
using ::cuda_on_cpu::ptx::mma_m16n8k8_tf32;
#else

/// `ldmatrix.sync.aligned.m8n8.x2.shared.b16` (sm_75): two of the matrices that ldmatrix_x4() loads
/// four of.
__device__ inline void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(shared_address(row))
               : "memory");
}

/// `ldmatrix.sync.aligned.m8n8.x4.shared.b16` (sm_75): the whole warp loads four matrices of 8 rows
/// of 16 bytes from shared memory. Lane 8 * m + i tells where row i of matrix m begins, at a
/// multiple of 16 bytes. Lane l gets, of each matrix, 4 bytes of row l / 4: the (l % 4)th. Made for
/// 16-bit elements, it moves 32-bit ones as well: each lane gets one, and that is how mma.sync
/// wants its factors.
__device__ inline void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

/// `cvt.rna.tf32.f32` (sm_80): the nearest number with 10 bits of fraction instead of 23, the one
/// further from zero where two are as near.
__device__ inline std::uint32_t to_tf32(float value) {
#if __CUDA_ARCH__ >= 800
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
#else
  __trap();
  return __float_as_uint(value);
#endif
}

/// `mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32` (sm_80): the whole warp computes d += a * b
/// for a [16][8], b [8][8] and d [16][8]. With group = lane / 4 and place = lane % 4 a lane holds
///
///     a at (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4)
///     b at (place, group), (place + 4, group)
///     d at (group, 2 place), (group, 2 place + 1), (group + 8, 2 place), (group + 8, 2 place + 1)
///
/// The 13 low bits of a and b are ignored: what to_tf32() did not round before is truncated.
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                        const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();  // rungs that come here decline older GPUs
#endif
}

#endif

}  // namespace convladder::BACKEND::ptx
