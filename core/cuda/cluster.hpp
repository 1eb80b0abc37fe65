/// @file cluster.hpp
/// @brief Clusters: blocks that run at the same time, near each other, and reach into each other's
/// shared memory (compute capability 9.0).
///
/// The functions in namespace ptx are named after their instructions, as those of ptx.hpp.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND {

/// As launch(), with every `blocks` neighbours along grid.x in a cluster. grid.x is a multiple of
/// `blocks`, which any GPU with clusters takes up to 8 of.
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

/// `%cluster_ctarank` (sm_90): the block's number in its cluster; 0 without one.
__device__ inline unsigned cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

/// `barrier.cluster.arrive.relaxed` (sm_90): this thread is at the barrier of all threads of the
/// cluster. It has to wait before it arrives again. What it has written before need not be visible
/// to those who have waited, but for barriers that were initialised before a
/// fence_mbarrier_init(): a release would wait for all its writes to memory.
__device__ inline void barrier_cluster_arrive_relaxed() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#else
  __trap();
#endif
}

/// `barrier.cluster.wait` (sm_90): waits until all threads of the cluster have arrived, but for
/// those that have exited.
__device__ inline void barrier_cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
  __trap();
#endif
}

/// `mapa` (sm_90): the address of what lies at `shared`, in the shared memory of the cluster's
/// block of this rank.
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
/// address of mapa(). That block must not have ended. It tells that this thread has read what it
/// wanted to; what it has written need not be visible. (As a release, nvcc 13 puts a MEMBAR.ALL.GPU
/// before it.)
__device__ inline void mbarrier_arrive_relaxed(unsigned address) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(address)
               : "memory");
#else
  __trap();
#endif
}

/// `st.async` (sm_90): stores four numbers at an address of mapa(), a multiple of 16, and then
/// tells the barrier at another one, in the same block, of 16 bytes. Who waits there for them all
/// may read them. That block must not have ended, nor end before it has waited.
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

/// tma_load() into several blocks of the cluster, those of which `blocks` has the bit of their rank
/// (sm_90): to the same place in the shared memory of each, whose barrier at the same place is told
/// of the bytes. The box is read once. None of the blocks may have ended, nor end before it has
/// waited for the bytes.
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
