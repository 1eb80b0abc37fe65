/// @file ptx.hpp
/// @brief PTX instructions without a CUDA C++ function, as functions named after them.
///
/// Inline assembly is used only here, in cluster.hpp and in row_or_zeros.hpp. Under nvcc each
/// function is one instruction; on the CPU it is emulated as specified by NVIDIA's "PTX ISA" manual
/// (9.0), by <cuda_on_cpu/ptx.hpp>, so that kernels that use it can be tested without a GPU.
#pragma once

#include <cuda.h>
#include <cuda_pipeline.h>

#include <cstdint>
#include <cstring>

#include "core/cuda/launch.hpp"
#ifndef __CUDACC__
#include <cuda_on_cpu/ptx.hpp>
#endif

namespace convladder::BACKEND::ptx {

#ifdef __CUDACC__
/// The 32-bit address of shared memory in PTX, relative to the shared window.
__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
#endif

/// `cp.async` (sm_80): copies kBytes = 4, 8 or 16 from global to shared memory asynchronously,
/// without passing through registers. Only the first `read_bytes` are read; the rest of the
/// destination becomes zero. Both addresses are multiples of kBytes; with read_bytes = 0 the source
/// is not read, but must still be aligned. The bytes are visible to the calling thread after
/// cp_async_wait_group(), and to the other threads after a subsequent barrier.
///
/// Copies of 16 bytes bypass the L1 cache (`.cg`), smaller ones use it (`.ca`). Older GPUs (sm_75)
/// copy synchronously.
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

/// `cp.async.wait_group`: waits until all but the last kGroups groups of this thread are complete.
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
using ::cuda_on_cpu::ptx::cp_async_bulk;
using ::cuda_on_cpu::ptx::cp_async_bulk_commit_group;
using ::cuda_on_cpu::ptx::cp_async_bulk_wait_group_read;
using ::cuda_on_cpu::ptx::cp_async_mbarrier_arrive_noinc;
using ::cuda_on_cpu::ptx::fence_mbarrier_init;
using ::cuda_on_cpu::ptx::fence_proxy_async;
using ::cuda_on_cpu::ptx::ldmatrix_x2;
using ::cuda_on_cpu::ptx::ldmatrix_x2_trans;
using ::cuda_on_cpu::ptx::ldmatrix_x4;
using ::cuda_on_cpu::ptx::ldmatrix_x4_trans;
using ::cuda_on_cpu::ptx::mbarrier_arrive;
using ::cuda_on_cpu::ptx::mbarrier_arrive_expect_tx;
using ::cuda_on_cpu::ptx::mbarrier_init;
using ::cuda_on_cpu::ptx::mbarrier_wait;
using ::cuda_on_cpu::ptx::mma_m16n8k16_bf16;
using ::cuda_on_cpu::ptx::mma_m16n8k16_f16;
using ::cuda_on_cpu::ptx::mma_m16n8k8_tf32;
using ::cuda_on_cpu::ptx::named_barrier_sync;
using ::cuda_on_cpu::ptx::prefetch_tensor_map;
using ::cuda_on_cpu::ptx::setmaxnreg_dec;
using ::cuda_on_cpu::ptx::setmaxnreg_inc;
using ::cuda_on_cpu::ptx::shared_address;
using ::cuda_on_cpu::ptx::stmatrix_x4_trans;
using ::cuda_on_cpu::ptx::tma_load;
using ::cuda_on_cpu::ptx::tma_load_im2col;
using ::cuda_on_cpu::ptx::tma_store;
using ::cuda_on_cpu::ptx::wgmma_commit_group;
using ::cuda_on_cpu::ptx::wgmma_fence;
using ::cuda_on_cpu::ptx::wgmma_m64k16_bf16;
using ::cuda_on_cpu::ptx::wgmma_m64k16_f16;
using ::cuda_on_cpu::ptx::wgmma_m64k32_e4m3;
using ::cuda_on_cpu::ptx::wgmma_m64k8_tf32;
using ::cuda_on_cpu::ptx::wgmma_wait_group;
/// See wgmma_descriptor() below.
__device__ inline std::uint64_t wgmma_descriptor(const void* shared, int group_bytes = 1024,
                                                 int row_bytes = 128) {
  return ::cuda_on_cpu::ptx::wgmma_descriptor(shared, 16, group_bytes, row_bytes);
}
/// See wgmma_row_major_descriptor() below.
__device__ inline std::uint64_t wgmma_row_major_descriptor(const void* shared, int piece_bytes,
                                                           int row_bytes = 128) {
  return ::cuda_on_cpu::ptx::wgmma_descriptor(shared, piece_bytes, 8 * row_bytes, row_bytes);
}
#else

/// `ldmatrix.sync.aligned.m8n8.x2.shared.b16` (sm_75): two matrices; see ldmatrix_x4().
__device__ inline void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(shared_address(row))
               : "memory");
}

/// `ldmatrix.sync.aligned.m8n8.x4.shared.b16` (sm_75): the whole warp loads four matrices of 8 rows
/// of 16 bytes from shared memory. Lane 8 * m + i passes the address of row i of matrix m, a
/// multiple of 16 bytes. Lane l receives 4 bytes of row l / 4 of each matrix, the (l % 4)th. The
/// instruction is designed for 16-bit elements; for 32-bit elements each lane receives one, which
/// is the fragment layout of mma.sync.
__device__ inline void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

/// `ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16` (sm_75): two matrices; see ldmatrix_x4_trans().
__device__ inline void ldmatrix_x2_trans(std::uint32_t (&fragment)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(shared_address(row))
               : "memory");
}

/// `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16` (sm_75): like ldmatrix_x4(), but each matrix
/// [8][8] of 16-bit elements is transposed: lane l receives the elements of rows 2 (l % 4) and 2 (l
/// % 4) + 1 in column l / 4, the first one in the low half. This loads a row-major operand b
/// [k][n].
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

/// `stmatrix.sync.aligned.m8n8.x4.trans.shared.b16` (sm_90): the inverse of ldmatrix_x4_trans():
/// lane l passes, for each matrix, the elements of rows 2 (l % 4) and 2 (l % 4) + 1 in column l
/// / 4. It stores accumulators of mma.sync and wgmma, rounded to 16 bits and packed in pairs along
/// a row, transposed.
__device__ inline void stmatrix_x4_trans(void* row, const std::uint32_t (&fragment)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(row)),
               "r"(fragment[0]), "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
               : "memory");
#else
  __trap();
#endif
}

/// `cvt.rna.tf32.f32` (sm_80): rounds to the nearest number with 10 fraction bits instead of 23,
/// ties away from zero.
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
/// The 13 low bits of a and b are ignored: an operand that was not rounded by to_tf32() is
/// truncated.
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                        const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();  // rungs that use it decline older GPUs
#endif
}

/// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` (sm_80): the same with a [16][16], b [16][8]
/// of fp16. A register of a or b holds two consecutive elements along k, the first one in its low
/// half; it begins
///
///     a at (group, 2 place), (group + 8, 2 place), (group, 2 place + 8), (group + 8, 2 place + 8)
///     b at (2 place, group), (2 place + 8, group)
///
/// d is as above.
__device__ inline void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4],
                                        const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

/// `mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32` (sm_80): the same in bf16.
__device__ inline void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

/// Whether the device code being compiled may use wgmma: the architecture is sm_90a, not sm_90.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CONVLADDER_SM90A 1
#else
#define CONVLADDER_SM90A 0
#endif

/// `mbarrier.init` (sm_80): a barrier in shared memory whose phases complete after this many
/// arrivals and after the bytes that these expect. Called by one thread; it is visible to the other
/// threads after fence_mbarrier_init() of this thread and a barrier of the block.
__device__ inline void mbarrier_init(std::uint64_t* barrier, int arrivals) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
#else
  __trap();  // here and below: rungs that use it decline older GPUs
#endif
}

/// `fence.mbarrier_init` (sm_90): makes initialised barriers visible to TMA (the async proxy).
__device__ inline void fence_mbarrier_init() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/// `mbarrier.arrive`: one arrival in the current phase; this thread's earlier writes are visible to
/// threads that have waited for the phase.
__device__ inline void mbarrier_arrive(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#else
  __trap();
#endif
}

/// `cp.async.mbarrier.arrive.noinc` (sm_80): one arrival in the current phase, triggered when all
/// cp_async() copies that this thread has issued so far are complete; the thread does not wait for
/// them. It does not order other stores of the thread. (`noinc`: the barrier's expected count
/// includes this arrival from the beginning.)
__device__ inline void cp_async_mbarrier_arrive_noinc(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
#else
  __trap();
#endif
}

/// `mbarrier.arrive.expect_tx` (sm_90): an arrival that also announces `bytes` from TMA; the phase
/// completes after the last arrival and the last byte.
__device__ inline void mbarrier_arrive_expect_tx(std::uint64_t* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
#else
  __trap();
#endif
}

/// `mbarrier.try_wait.parity` (sm_90) until it succeeds: waits until the phase of that parity is
/// complete; the first phase has parity 0. On a new barrier, the preceding phase has parity 1 and
/// counts as complete.
__device__ inline void mbarrier_wait(std::uint64_t* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
  unsigned done;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!done);
#else
  __trap();
#endif
}

/// `fence.proxy.async` (sm_90): orders ordinary stores of this thread to shared memory (generic
/// proxy) before accesses by wgmma and TMA (async proxy) that follow a subsequent barrier.
__device__ inline void fence_proxy_async() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// `bar.sync`: this many threads of the block, in whole warps, meet at named barrier 1 to 15; their
/// earlier writes are visible to all of them. (Barrier 0 is __syncthreads().)
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// `cp.async.bulk` (sm_90): TMA copies contiguous bytes to shared memory and counts them at the
/// barrier. Both addresses and the count are multiples of 16. Called by one thread.
__device__ inline void cp_async_bulk(void* shared_to, const void* global_from, int bytes,
                                     std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared_to)),
      "l"(__cvta_generic_to_global(global_from)), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
#else
  __trap();
#endif
}

/// `prefetch.tensormap` (sm_90): prefetches the descriptor.
__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/// `cp.async.bulk.tensor`, tiled (sm_90): TMA copies a box of an array, as described by `map`, to
/// shared memory, and counts its bytes at the barrier. `at` is the box's first element, innermost
/// axis first; elements outside of the array become zero and are counted, too. Called by one
/// thread.
template <int kRank>
__device__ inline void tma_load(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier,
                                const int (&at)[kRank]) {
  static_assert(kRank >= 2 && kRank <= 4, "not needed so far");
#if __CUDA_ARCH__ >= 900
  if constexpr (kRank == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared_to)),
        "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1])
        : "memory");
  } else if constexpr (kRank == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared_to)),
        "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared_to)),
        "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  }
#else
  __trap();
#endif
}

/// `cp.async.bulk.tensor`, to an array (sm_90): the inverse of tma_load(), for a box in the same
/// shared-memory layout; elements outside of the array are not stored. Called by one thread, after
/// a barrier that follows fence_proxy_async() of all threads that have written the box.
template <int kRank>
__device__ inline void tma_store(const CUtensorMap* map, const void* shared_from,
                                 const int (&at)[kRank]) {
  static_assert(kRank == 2 || kRank == 4, "not needed so far");
#if __CUDA_ARCH__ >= 900
  if constexpr (kRank == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
        "r"(shared_address(shared_from)), "r"(at[0]), "r"(at[1])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            map),
        "r"(shared_address(shared_from)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  }
#else
  __trap();
#endif
}

/// `cp.async.bulk.commit_group` (sm_90): closes this thread's group of stores.
__device__ inline void cp_async_bulk_commit_group() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

/// `cp.async.bulk.wait_group.read` (sm_90): waits until all but the last kGroups groups of this
/// thread have read shared memory, which may then be overwritten. A block must not end before.
template <int kGroups>
__device__ inline void cp_async_bulk_wait_group_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
#endif
}

/// `cp.async.bulk.tensor`, im2col (sm_90): loads channels from c on of the map's number of pixels
/// of an array [N][H][W][C]. The first pixel is (n, h, w), the others follow along w, then h, then
/// n, within the map's bounding box and with its steps; each is shifted by the offsets before it is
/// read. This is the order of a convolution's windows, and the offsets select the tap.
__device__ inline void tma_load_im2col(void* shared_to, const CUtensorMap* map,
                                       std::uint64_t* barrier, int c, int w, int h, int n,
                                       unsigned short offset_w, unsigned short offset_h) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(shared_to)),
      "l"(map), "r"(shared_address(barrier)), "r"(c), "r"(w), "r"(h), "r"(n), "h"(offset_w),
      "h"(offset_h)
      : "memory");
#else
  __trap();
#endif
}

/// The descriptor of a K-major wgmma operand in shared memory: rows of 128 bytes along k, in groups
/// of 8 rows that are `group_bytes` apart, permuted by TMA's 128-byte swizzle (bits 4 to 6 of every
/// address are XORed with bits 7 to 9). `shared` is row 0 before the permutation, at a multiple of
/// 16 bytes; the next 8 k-steps begin 32 bytes further.
///
/// Rows may have 64 or 32 bytes instead, with the swizzles of these sizes: bits 4 and 5 are XORed
/// with bits 7 and 8, or bit 4 with bit 7.
__device__ inline std::uint64_t wgmma_descriptor(const void* shared, int group_bytes = 1024,
                                                 int row_bytes = 128) {
  return static_cast<std::uint64_t>((shared_address(shared) & 0x3FFFF) >> 4) |
         std::uint64_t{1} << 16 | static_cast<std::uint64_t>(group_bytes >> 4) << 32 |
         static_cast<std::uint64_t>(row_bytes == 128  ? 1
                                    : row_bytes == 64 ? 2
                                                      : 3)
             << 62;
}

/// The descriptor of an MN-major wgmma operand of 16-bit elements: a row-major b [k][n] for a wgmma
/// with kRowMajorB, or a transposed a [k][64] for one with kColumnMajorA. Its rows are divided into
/// spans of 64 columns, 128 bytes: the spans of all rows are contiguous, each permuted as above,
/// and the next 64 columns begin `piece_bytes` further. `shared` is a row before the permutation,
/// at a multiple of 128 bytes; the next 16 k-steps begin 2048 bytes further. With rows of 64 bytes,
/// spans have 32 columns, and all distances except `piece_bytes` are halved.
__device__ inline std::uint64_t wgmma_row_major_descriptor(const void* shared, int piece_bytes,
                                                           int row_bytes = 128) {
  return static_cast<std::uint64_t>((shared_address(shared) & 0x3FFFF) >> 4) |
         static_cast<std::uint64_t>(piece_bytes >> 4) << 16 |
         static_cast<std::uint64_t>(8 * row_bytes >> 4) << 32 |
         static_cast<std::uint64_t>(row_bytes == 128 ? 1 : 2) << 62;
}

/// `wgmma.fence` (sm_90a): required before the first wgmma, and before one that uses registers
/// (accumulators) that the thread has written.
__device__ inline void wgmma_fence() {
#if CONVLADDER_SM90A
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/// `wgmma.commit_group` (sm_90a): closes a group of wgmma instructions.
__device__ inline void wgmma_commit_group() {
#if CONVLADDER_SM90A
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/// `wgmma.wait_group` (sm_90a): waits for all but the last kGroups groups.
template <int kGroups>
__device__ inline void wgmma_wait_group() {
#if CONVLADDER_SM90A
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#endif
}

/// `setmaxnreg.inc` (sm_90a): all warps of a warpgroup wait until they have been allocated this
/// many registers.
template <int kRegisters>
__device__ inline void setmaxnreg_inc() {
#if CONVLADDER_SM90A
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

/// `setmaxnreg.dec` (sm_90a): releases registers.
template <int kRegisters>
__device__ inline void setmaxnreg_dec() {
#if CONVLADDER_SM90A
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

/// @cond
// wgmma names each accumulator register: these lists are its operands %0 to %7, %15, %31, %47, %63,
// %95, %103, %111 and %127.
#define CONVLADDER_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define CONVLADDER_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define CONVLADDER_NAMES_32 \
  CONVLADDER_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CONVLADDER_NAMES_48 \
  CONVLADDER_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define CONVLADDER_NAMES_64 \
  CONVLADDER_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CONVLADDER_NAMES_96                                                          \
  CONVLADDER_NAMES_64                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CONVLADDER_NAMES_104 \
  CONVLADDER_NAMES_96        \
  ", %96, %97, %98, %99, %100, %101, %102, %103"
#define CONVLADDER_NAMES_112 \
  CONVLADDER_NAMES_104       \
  ", %104, %105, %106, %107, %108, %109, %110, %111"
#define CONVLADDER_NAMES_128                                                                     \
  CONVLADDER_NAMES_64                                                                            \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
#define CONVLADDER_SUMS_8(d, i)                                                               \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define CONVLADDER_SUMS_16(d, i) CONVLADDER_SUMS_8(d, i), CONVLADDER_SUMS_8(d, i + 8)
#define CONVLADDER_SUMS_32(d, i) CONVLADDER_SUMS_16(d, i), CONVLADDER_SUMS_16(d, i + 16)
#define CONVLADDER_SUMS_48(d, i) CONVLADDER_SUMS_32(d, i), CONVLADDER_SUMS_16(d, i + 32)
#define CONVLADDER_SUMS_64(d, i) CONVLADDER_SUMS_32(d, i), CONVLADDER_SUMS_32(d, i + 32)
#define CONVLADDER_SUMS_96(d, i) CONVLADDER_SUMS_64(d, i), CONVLADDER_SUMS_32(d, i + 64)
#define CONVLADDER_SUMS_104(d, i) CONVLADDER_SUMS_96(d, i), CONVLADDER_SUMS_8(d, i + 96)
#define CONVLADDER_SUMS_112(d, i) CONVLADDER_SUMS_96(d, i), CONVLADDER_SUMS_16(d, i + 96)
#define CONVLADDER_SUMS_128(d, i) CONVLADDER_SUMS_64(d, i), CONVLADDER_SUMS_64(d, i + 64)
/// @endcond

/// One wgmma with d, a, b and `accumulate` of the calling function, and this many accumulators per
/// thread. The operands after the accumulators are a, b and whether to accumulate.
#define CONVLADDER_WGMMA(instruction, sums, at_a, at_b, at_accumulate, flags)           \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " at_accumulate                        \
               ", 0;\n"                                                                 \
               "wgmma.mma_async.sync.aligned." instruction " {" CONVLADDER_NAMES_##sums \
               "}, " at_a ", " at_b ", p, " flags ";\n}"                                \
               : CONVLADDER_SUMS_##sums(d, 0)                                           \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
/// The same with a in registers: four operands.
#define CONVLADDER_WGMMA_OF_REGISTERS(instruction, sums, at_a, at_b, at_accumulate, flags) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " at_accumulate                           \
               ", 0;\n"                                                                    \
               "wgmma.mma_async.sync.aligned." instruction " {" CONVLADDER_NAMES_##sums    \
               "}, {" at_a "}, " at_b ", p, " flags ";\n}"                                 \
               : CONVLADDER_SUMS_##sums(d, 0)                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                       \
                 "r"(static_cast<int>(accumulate)))
/// The same for the calling function's kN; `types` is the suffix of the instruction.
#define CONVLADDER_WGMMA_OF_N(types, flags)                                \
  if constexpr (kN == 16) {                                                \
    CONVLADDER_WGMMA("m64n16" types, 8, "%8", "%9", "%10", flags);         \
  } else if constexpr (kN == 32) {                                         \
    CONVLADDER_WGMMA("m64n32" types, 16, "%16", "%17", "%18", flags);      \
  } else if constexpr (kN == 64) {                                         \
    CONVLADDER_WGMMA("m64n64" types, 32, "%32", "%33", "%34", flags);      \
  } else if constexpr (kN == 96) {                                         \
    CONVLADDER_WGMMA("m64n96" types, 48, "%48", "%49", "%50", flags);      \
  } else if constexpr (kN == 128) {                                        \
    CONVLADDER_WGMMA("m64n128" types, 64, "%64", "%65", "%66", flags);     \
  } else if constexpr (kN == 192) {                                        \
    CONVLADDER_WGMMA("m64n192" types, 96, "%96", "%97", "%98", flags);     \
  } else if constexpr (kN == 208) {                                        \
    CONVLADDER_WGMMA("m64n208" types, 104, "%104", "%105", "%106", flags); \
  } else if constexpr (kN == 224) {                                        \
    CONVLADDER_WGMMA("m64n224" types, 112, "%112", "%113", "%114", flags); \
  } else {                                                                 \
    CONVLADDER_WGMMA("m64n256" types, 128, "%128", "%129", "%130", flags); \
  }

/// `wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32` (sm_90a): a warpgroup (four warps, the
/// index of the first a multiple of 4) computes d += a * b, or d = a * b without `accumulate`, for
/// a [64][8] and b [8][kN], both K-major and given by wgmma_descriptor(): row n of b in memory
/// holds column n. Thread t of the warpgroup holds, with row = 16 (t / 32) + t % 32 / 4 and column
/// = 2 (t % 4), of d
///
///     d[4 j], d[4 j + 1]      at (row, 8 j + column), (row, 8 j + column + 1)
///     d[4 j + 2], d[4 j + 3]  at (row + 8, 8 j + column), (row + 8, 8 j + column + 1)
///
/// The results are available after wgmma_commit_group() and wgmma_wait_group(). The 13 low bits of
/// the operands are ignored.
template <int kN>
__device__ inline void wgmma_m64k8_tf32(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                        bool accumulate) {
  static_assert(
      kN == 16 || kN == 32 || kN == 64 || kN == 128 || kN == 208 || kN == 224 || kN == 256,
      "not needed so far");
#if CONVLADDER_SM90A
  CONVLADDER_WGMMA_OF_N("k8.f32.tf32.tf32", "1, 1")
#else
  __trap();
#endif
}

/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16` (sm_90a): the same with a [64][16] and b
/// [16][kN] of fp16, both with rows of 64 elements along k; the next 16 k-steps begin 32 bytes
/// further. With kRowMajorB, b is given by wgmma_row_major_descriptor(); with kColumnMajorA, a is,
/// transposed. Only 16-bit operands can be MN-major.
template <int kN, bool kRowMajorB = false, bool kColumnMajorA = false>
__device__ inline void wgmma_m64k16_f16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                        bool accumulate) {
  static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 128 || kN == 192 ||
                    kN == 208 || kN == 224 || kN == 256,
                "not needed so far");
#if CONVLADDER_SM90A
  if constexpr (kRowMajorB && kColumnMajorA) {
    CONVLADDER_WGMMA_OF_N("k16.f32.f16.f16", "1, 1, 1, 1")
  } else if constexpr (kRowMajorB) {
    CONVLADDER_WGMMA_OF_N("k16.f32.f16.f16", "1, 1, 0, 1")
  } else if constexpr (kColumnMajorA) {
    CONVLADDER_WGMMA_OF_N("k16.f32.f16.f16", "1, 1, 1, 0")
  } else {
    CONVLADDER_WGMMA_OF_N("k16.f32.f16.f16", "1, 1, 0, 0")
  }
#else
  __trap();
#endif
}

/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16` (sm_90a): the same in bf16.
template <int kN, bool kRowMajorB = false, bool kColumnMajorA = false>
__device__ inline void wgmma_m64k16_bf16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                         bool accumulate) {
  static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 128 || kN == 192 ||
                    kN == 208 || kN == 224 || kN == 256,
                "not needed so far");
#if CONVLADDER_SM90A
  if constexpr (kRowMajorB && kColumnMajorA) {
    CONVLADDER_WGMMA_OF_N("k16.f32.bf16.bf16", "1, 1, 1, 1")
  } else if constexpr (kRowMajorB) {
    CONVLADDER_WGMMA_OF_N("k16.f32.bf16.bf16", "1, 1, 0, 1")
  } else if constexpr (kColumnMajorA) {
    CONVLADDER_WGMMA_OF_N("k16.f32.bf16.bf16", "1, 1, 1, 0")
  } else {
    CONVLADDER_WGMMA_OF_N("k16.f32.bf16.bf16", "1, 1, 0, 0")
  }
#else
  __trap();
#endif
}

/// `wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3` (sm_90a): the same with a [64][32] and b
/// [32][kN] in FP8, both with rows of 128 elements along k; the next 32 k-steps begin 32 bytes
/// further. The products and the old accumulator are added with 13 fraction bits relative to the
/// largest exponent, and the result keeps 13 fraction bits: partial results must therefore be
/// promoted regularly.
template <int kN>
__device__ inline void wgmma_m64k32_e4m3(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                         bool accumulate) {
  static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 128 || kN == 192 || kN == 256,
                "not needed so far");
#if CONVLADDER_SM90A
  CONVLADDER_WGMMA_OF_N("k32.f32.e4m3.e4m3", "1, 1")
#else
  __trap();
#endif
}

/// wgmma_m64k8_tf32() with a in registers. A thread holds, with row as above and k = t % 4, of a
///
///     a[0], a[1]  at (row, k), (row + 8, k)        a[2], a[3]  at (row, k + 4), (row + 8, k + 4)
///
/// These registers must not change until the wait for the instruction, and a wgmma_fence() must
/// follow the code that has written them.
template <int kN>
__device__ inline void wgmma_m64k8_tf32(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                        std::uint64_t b, bool accumulate) {
  static_assert(kN == 64 || kN == 128 || kN == 256, "not needed so far");
#if CONVLADDER_SM90A
  if constexpr (kN == 64) {
    CONVLADDER_WGMMA_OF_REGISTERS("m64n64k8.f32.tf32.tf32", 32, "%32, %33, %34, %35", "%36", "%37",
                                  "1, 1");
  } else if constexpr (kN == 128) {
    CONVLADDER_WGMMA_OF_REGISTERS("m64n128k8.f32.tf32.tf32", 64, "%64, %65, %66, %67", "%68", "%69",
                                  "1, 1");
  } else {
    CONVLADDER_WGMMA_OF_REGISTERS("m64n256k8.f32.tf32.tf32", 128, "%128, %129, %130, %131", "%132",
                                  "%133", "1, 1");
  }
#else
  __trap();
#endif
}

#undef CONVLADDER_WGMMA_OF_N
#undef CONVLADDER_WGMMA_OF_REGISTERS
#undef CONVLADDER_WGMMA
#undef CONVLADDER_SUMS_8
#undef CONVLADDER_SUMS_16
#undef CONVLADDER_SUMS_32
#undef CONVLADDER_SUMS_48
#undef CONVLADDER_SUMS_64
#undef CONVLADDER_SUMS_96
#undef CONVLADDER_SUMS_128
#undef CONVLADDER_NAMES_8
#undef CONVLADDER_NAMES_16
#undef CONVLADDER_NAMES_32
#undef CONVLADDER_NAMES_48
#undef CONVLADDER_NAMES_64
#undef CONVLADDER_NAMES_96
#undef CONVLADDER_NAMES_128

#endif

}  // namespace convladder::BACKEND::ptx
