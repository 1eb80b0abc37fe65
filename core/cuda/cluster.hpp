/// @file cluster.hpp
/// @brief Thread block clusters: blocks that run concurrently on nearby SMs and access each other's
/// shared memory (compute capability 9.0).
///
/// The functions in namespace ptx are named after their instructions, like those of ptx.hpp.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND {

/// Like launch(), with clusters of `blocks` consecutive blocks along grid.x. grid.x is a multiple
/// of `blocks`; every GPU with clusters supports up to 8.
/// @throws DeviceError if CUDA refuses the launch.
template <class... Parameters, class... Values>
void launch_in_clusters(unsigned blocks, void (*kernel)(Parameters...), const LaunchConfig& config,
                        Values&&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {blocks, 1, 1};
  launch_with(&cluster, kernel, config, std::forward<Values>(arguments)...);
}

namespace ptx {

#ifndef __CUDACC__
/// See below.
__device__ inline unsigned cluster_rank() { return ::cuda_on_cpu::ptx::cluster_ctarank(); }
using ::cuda_on_cpu::ptx::barrier_cluster_arrive_relaxed;
using ::cuda_on_cpu::ptx::barrier_cluster_wait;
using ::cuda_on_cpu::ptx::mapa;
using ::cuda_on_cpu::ptx::mbarrier_arrive_relaxed;
using ::cuda_on_cpu::ptx::st_async;
using ::cuda_on_cpu::ptx::tma_load_multicast;
#else

/// `%cluster_ctarank` (sm_90): the block's rank in its cluster; 0 without a cluster.
__device__ inline unsigned cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

/// `barrier.cluster.arrive.relaxed` (sm_90): the thread arrives at the barrier of all threads of
/// the cluster, and must wait before it arrives again. Its earlier writes need not be visible to
/// threads that have waited, except for barriers that were initialised before a
/// fence_mbarrier_init(): a release would wait for all its writes to memory.
__device__ inline void barrier_cluster_arrive_relaxed() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#else
  __trap();
#endif
}

/// `barrier.cluster.wait` (sm_90): waits until all threads of the cluster have arrived, except
/// those that have exited.
__device__ inline void barrier_cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
  __trap();
#endif
}

/// `mapa` (sm_90): the address that corresponds to `shared` in the shared memory of the cluster's
/// block with this rank.
__device__ inline unsigned mapa(const void* shared, unsigned rank) {
  unsigned address = 0;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(shared)), "r"(rank));
#else
  __trap();
#endif
  return address;
}

/// `mbarrier.arrive.relaxed`, in any block of the cluster (sm_90): one arrival at the barrier at an
/// address returned by mapa(). That block must not have ended. The arrival signals that this thread
/// has completed its reads; its writes need not be visible. (For a release, nvcc 13 emits a
/// MEMBAR.ALL.GPU before it.)
__device__ inline void mbarrier_arrive_relaxed(unsigned address) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(address)
               : "memory");
#else
  __trap();
#endif
}

/// `st.async` (sm_90): stores four floats at an address of mapa(), a multiple of 16, and then
/// counts 16 bytes at the barrier at another such address in the same block. A thread that waits
/// there for all bytes may read them. That block must not have ended, and must not end before it
/// has waited.
__device__ inline void st_async(unsigned address, const float4& value, unsigned barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
#else
  __trap();
#endif
}

/// Multicast tma_load() (sm_90): loads into the blocks of the cluster whose rank's bit is set in
/// `blocks`, at the same offset in the shared memory of each; the barrier at the same offset counts
/// the bytes. The box is read once. None of the blocks may have ended, and none may end before it
/// has waited for the bytes.
template <int kRank>
__device__ inline void tma_load_multicast(void* shared_to, const CUtensorMap* map,
                                          std::uint64_t* barrier, const int (&at)[kRank],
                                          unsigned blocks) {
  static_assert(kRank == 2, "not needed so far");
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(shared_to)),
      "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1]),
      "h"(static_cast<unsigned short>(blocks))
      : "memory");
#else
  __trap();
#endif
}

#endif

}  // namespace ptx
}  // namespace convladder::BACKEND
