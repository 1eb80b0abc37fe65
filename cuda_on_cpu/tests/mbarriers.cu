#include <cuda_pipeline.h>

#include <cuda_on_cpu/ptx.hpp>

#include "kernels.hpp"

namespace ptx = cuda_on_cpu::ptx;

__global__ void pass_through_ring(const int* in, int* out, int rounds) {
  constexpr int kStages = 3;
  __shared__ std::uint64_t full[kStages], empty[kStages];
  __shared__ int stage[kStages][32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&full[i], 32);
      ptx::mbarrier_init(&empty[i], 1);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (int round = 0; round < rounds; ++round) {
    const int i = round % kStages;
    const unsigned parity = static_cast<unsigned>(round / kStages) % 2;
    if (threadIdx.x < 32) {  // consumers
      ptx::mbarrier_wait(&full[i], parity);
      out[32 * round + static_cast<int>(lane)] = stage[i][31 - lane];
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&empty[i]);
    } else {  // producers
      ptx::mbarrier_wait(&empty[i], parity ^ 1);
      stage[i][lane] = in[32 * round + static_cast<int>(lane)];
      ptx::mbarrier_arrive(&full[i]);
    }
  }
}

__global__ void wait_in_vain(int arrivals) {
  __shared__ std::uint64_t barrier;
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, arrivals);  // [initialized]
  __syncthreads();
  if (threadIdx.x > 0) {
    ptx::mbarrier_arrive(&barrier);
  } else {
    ptx::mbarrier_wait(&barrier, 0);  // [endless wait]
  }
}

__global__ void wait_for_phase_before(int* done) {
  __shared__ std::uint64_t barrier;
  ptx::mbarrier_init(&barrier, 1);
  ptx::mbarrier_wait(&barrier, 1);  // the phase before the first counts as complete: returns at
                                    // once
  *done = 1;
}

__global__ void misuse_barrier(int how) {
  __shared__ std::uint64_t barrier[2];
  const bool first = threadIdx.x == 0;
  if (first && how != 0) ptx::mbarrier_init(barrier, 1);
  __syncthreads();
  if (how == 0) ptx::mbarrier_wait(barrier, 0);           // [not initialized]
  if (how == 1 && first) ptx::mbarrier_init(barrier, 1);  // [twice]
  if (how == 2 && first) {
    ptx::mbarrier_expect_tx(barrier, 16);
    ptx::mbarrier_arrive(barrier);
    ptx::mbarrier_arrive(barrier);  // [once too often]
  }
  if (how == 3 && first) {
    barrier[0] = 0;
    ptx::mbarrier_arrive(barrier);  // [overwritten]
  }
  if (how == 4 && first) ptx::mbarrier_wait(barrier, 2);             // [parity]
  if (how == 5 && first) ptx::mbarrier_expect_tx(barrier, 1 << 20);  // [too many bytes]
  if (how == 6 && first) {
    ptx::mbarrier_inval(barrier);
    ptx::mbarrier_init(barrier, 1);  // now it may
    ptx::mbarrier_arrive(barrier);
    ptx::mbarrier_wait(barrier, 0);
  }
}

__global__ void meet_in_halves(int* out) {
  __shared__ int value[128];
  const unsigned i = threadIdx.x, half = i / 64;
  for (int round = 0; round < 3; ++round) {
    value[i] = static_cast<int>(i) + round;
    ptx::named_barrier_sync(1 + static_cast<int>(half), 64);
    const int other = value[i ^ 63u];
    ptx::named_barrier_sync(1 + static_cast<int>(half), 64);
    out[128 * round + static_cast<int>(i)] = other;
    if (half == 1 && round == 1) return;
  }
}

__global__ void meet_in_vain() {
  if (threadIdx.x < 32) ptx::named_barrier_sync(3, 64);  // [half a meeting]
}

__global__ void copies_arrive(const int* in, int* early, int* out, int how) {
  __shared__ std::uint64_t full;
  __shared__ int stage[64];
  const unsigned i = threadIdx.x % 32;
  if (threadIdx.x == 0) ptx::mbarrier_init(&full, 33);  // [for copies]
  __syncthreads();
  if (threadIdx.x >= 32) {
    __pipeline_memcpy_async(&stage[i], &in[i], 4);
    ptx::cp_async_mbarrier_arrive_noinc(&full);
    __pipeline_memcpy_async(&stage[32 + i], &in[32 + i], 4);  // too late for any wait
    early[i] = stage[i];
    __syncwarp();  // separates these loads from the last arrival
    if (i == 0) ptx::mbarrier_arrive(&full);
    if (i == 0 && how == 2) ptx::cp_async_mbarrier_arrive_noinc(&full);  // [one copy too many]
  } else if (how == 0) {
    ptx::mbarrier_wait(&full, 0);
    out[i] = stage[i];
    out[32 + i] = stage[32 + i];
  }
}

__global__ void bulk_copy(const int* in, int* early, int* out, int shift) {
  __shared__ std::uint64_t full;
  __shared__ __align__(16) int stage[32];
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_arrive_expect_tx(&full, 128);
    ptx::cp_async_bulk(stage, in + shift, 64, &full);            // [first half]
    ptx::cp_async_bulk(stage + 16, in + 16 + shift, 64, &full);  // [second half]
  }
  __syncthreads();
  early[threadIdx.x] = stage[threadIdx.x];
  __syncthreads();
  ptx::mbarrier_wait(&full, 0);
  out[threadIdx.x] = stage[threadIdx.x];
}
