#include <cuda_on_cpu/ptx.hpp>

#include "kernels.hpp"

namespace ptx = cuda_on_cpu::ptx;

namespace {

unsigned linear_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

}  // namespace

__global__ void cluster_ranks(unsigned* rank, unsigned* blocks) {
  rank[linear_block()] = ptx::cluster_ctarank();
  blocks[linear_block()] = ptx::cluster_nctarank();
}

__global__ void meet_in_clusters(int* flags, int* seen, int rounds) {
  const unsigned blocks = ptx::cluster_nctarank(), me = blockIdx.x;
  const unsigned next = me / blocks * blocks + (me + 1) % blocks;
  if (threadIdx.x >= 32) return;  // threads that have exited are not waited for
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) flags[me] = round + 1;
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (threadIdx.x == 0) seen[static_cast<int>(me) * rounds + round] = flags[next];
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();  // separates the load from the next store
  }
}

__global__ void misuse_cluster(ClusterMisuse how) {
  __shared__ std::uint64_t barrier;
  const unsigned rank = ptx::cluster_ctarank();
  const bool first = threadIdx.x == 0;
  if (how == ClusterMisuse::wait_first && first) ptx::barrier_cluster_wait();  // [waits first]
  if (first && !(how == ClusterMisuse::early_arrival && rank == 1)) ptx::mbarrier_init(&barrier, 1);
  __syncthreads();
  if (how == ClusterMisuse::ended && rank == 1) return;
  if (how != ClusterMisuse::early_arrival && how != ClusterMisuse::ended) {
    ptx::barrier_cluster_arrive();
    if (how == ClusterMisuse::arrives_twice) ptx::barrier_cluster_arrive();  // [arrives twice]
    ptx::barrier_cluster_wait();
  }
  if (how == ClusterMisuse::ended && first) {  // lets block 1 end
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
  if (rank == 0 && first) {
    const unsigned there = ptx::mapa(&barrier, how == ClusterMisuse::rank_outside ? 2 : 1);
    ptx::mbarrier_arrive_cluster(there);  // [arrives there]
  }
  if (how == ClusterMisuse::in_vain && rank == 0 && !first) {
    ptx::mbarrier_wait(&barrier, 0);  // [waits forever]
  }
  if (rank == 1 && how != ClusterMisuse::early_arrival) ptx::mbarrier_wait(&barrier, 0);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();  // [last meeting]
}

__global__ void share_boxes(const __grid_constant__ CUtensorMap map, int rounds, float* out,
                            ShareMisuse how) {
  constexpr int kFloats = 32;  // of a box
  __shared__ std::uint64_t full, empty;
  float* const stage = static_cast<float*>(cuda_on_cpu::dynamic_shared_memory());
  const unsigned blocks = ptx::cluster_nctarank(), rank = ptx::cluster_ctarank();
  const auto all = (1u << blocks) - 1;
  const int floats = static_cast<int>(blocks) * kFloats;
  const int cluster = static_cast<int>(blockIdx.x / blocks);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, static_cast<int>(blocks));
    ptx::fence_mbarrier_init();
  }
  if (how != ShareMisuse::no_first_meeting) {
    ptx::barrier_cluster_arrive_relaxed();
    ptx::barrier_cluster_wait();
  } else {
    __syncthreads();
  }
  for (int round = 0; round < rounds; ++round) {
    const unsigned parity = static_cast<unsigned>(round) % 2;
    if (threadIdx.x == 0) {
      ptx::mbarrier_wait(&empty, parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(&full, floats * 4);
      const int row =
          (cluster * rounds + round) * static_cast<int>(blocks) + static_cast<int>(rank);
      const unsigned mask = how == ShareMisuse::mask_outside ? 1u << blocks
                            : how == ShareMisuse::empty_mask ? 0u
                                                             : all;
      float* const to = stage + rank * kFloats;
      ptx::tma_load_multicast(to, &map, &full, {0, row}, mask);  // [shared load]
    }
    ptx::mbarrier_wait(&full, parity);
    for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) {
      out[(static_cast<int>(blockIdx.x) * rounds + round) * floats + i] = stage[i];
    }
    __syncthreads();  // separates the loads from the arrivals
    if (threadIdx.x < blocks)
      ptx::mbarrier_arrive_relaxed(ptx::mapa(&empty, threadIdx.x));  // [lets go]
  }
  if (how == ShareMisuse::no_last_meeting) return;
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
}

__global__ void share_with_one_that_ends(const __grid_constant__ CUtensorMap map, bool waits) {
  __shared__ std::uint64_t full;
  float* const stage = static_cast<float*>(cuda_on_cpu::dynamic_shared_memory());
  ptx::mbarrier_init(&full, 1);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (ptx::cluster_ctarank() == 1) {
    if (!waits) return;
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    return;
  }
  if (!waits) {  // until the other one has ended
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
  ptx::mbarrier_arrive_expect_tx(&full, 128);
  ptx::tma_load_multicast(stage, &map, &full, {0, 0}, 3);  // [into one that ends]
  ptx::mbarrier_wait(&full, 0);
  if (waits) {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
}

__global__ void exchange_in_clusters(int rounds, float4* out, ExchangeMisuse how) {
  __shared__ std::uint64_t full, read;
  float4* const parts = static_cast<float4*>(cuda_on_cpu::dynamic_shared_memory());
  const unsigned blocks = ptx::cluster_nctarank(), rank = ptx::cluster_ctarank();
  const unsigned thread = threadIdx.x, threads = blockDim.x;
  if (thread == 0 && !(how == ExchangeMisuse::no_first_meeting && rank == 1)) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&read, static_cast<int>(blocks * threads));
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (how == ExchangeMisuse::ended && rank == 1) return;
  if (how != ExchangeMisuse::no_first_meeting) {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
  for (int round = 0; round < rounds; ++round) {
    const unsigned parity = static_cast<unsigned>(round) % 2;
    if (thread == 0) {
      const unsigned bytes = blocks * threads * 16;
      ptx::mbarrier_arrive_expect_tx(
          &full, static_cast<int>(how == ExchangeMisuse::few_expected ? bytes - 8 : bytes));
    }
    for (unsigned to = 0; to < blocks; ++to) {
      const float first = static_cast<float>(100 * rank + 10 * to) + static_cast<float>(round);
      const unsigned wrong = how == ExchangeMisuse::unaligned ? 4
                             : how == ExchangeMisuse::outside ? blocks * threads * 16
                                                              : 0;
      const unsigned barrier = how == ExchangeMisuse::barrier_elsewhere ? blocks - 1 - to : to;
      ptx::st_async(ptx::mapa(parts + rank * threads + thread, to) + wrong,  // [exchanges]
                    make_float4(first, static_cast<float>(thread), 1.0f, 0.0f),
                    ptx::mapa(&full, barrier));
    }
    if (how == ExchangeMisuse::no_wait) return;
    ptx::mbarrier_wait(&full, parity);
    float4 sum{};
    for (unsigned from = 0; from < blocks; ++from) {
      const float4 part = parts[from * threads + thread];
      sum = make_float4(2 * sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
    }
    out[(blockIdx.x * threads + thread) * static_cast<unsigned>(rounds) +
        static_cast<unsigned>(round)] = sum;
    for (unsigned to = 0; to < blocks; ++to) ptx::mbarrier_arrive_relaxed(ptx::mapa(&read, to));
    ptx::mbarrier_wait(&read, parity);  // all have read what the next round overwrites
  }
}

__global__ void pass_backwards_in_clusters(unsigned* next) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) {
    mine = gridDim.x - 1 - blockIdx.x;
    wait_until([&] { return atomicAdd(next, 0u) == mine; });
    atomicAdd(next, 1u);
  }
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

__global__ void poll_in_clusters_for_ever(unsigned* flag) {
  if (blockIdx.x == 0) wait_until([&] { return atomicAdd(flag, 0u) == 1u; });  // [forever]
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}
