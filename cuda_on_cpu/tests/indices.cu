#include "kernels.hpp"

__global__ void record_indices(unsigned* grid_rank, unsigned* runs) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned rank = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  grid_rank[rank] = rank;
  runs[rank] += 1;
}

__global__ void store_arguments(char c, double d, float3 v, double* out) {
  c = static_cast<char>(c + 1);  // a thread's own copy
  out[0] = c;
  out[1] = d;
  out[2] = v.x;
  out[3] = v.z;
}

__global__ void record_order(unsigned* count, unsigned* order) {
  order[atomicAdd(count, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
  order[atomicAdd(count, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
}

template <bool kWithBarrier>
__global__ void rotate_through_shared(int* out) {
  __shared__ int value[32];
  const unsigned i = threadIdx.x;
  value[i] = static_cast<int>(i);
  if (kWithBarrier) __syncthreads();
  out[i] = value[(i + 1) % 32];
}
template __global__ void rotate_through_shared<true>(int*);
template __global__ void rotate_through_shared<false>(int*);

__global__ void unequal_work(unsigned long long* sum, int rounds) {
  unsigned long long mine = 0;
  const int my_rounds = rounds * static_cast<int>(blockIdx.x % 3 + 1);
  for (int i = 0; i < my_rounds; ++i) mine += static_cast<unsigned>(i) % 7;
  atomicAdd(sum, mine);
}
