#include "kernels.hpp"

namespace {
constexpr unsigned kAll = 0xffffffffu;
}

__global__ void shuffles(int* up, int* down, int* exchanged, int* broadcast, int width) {
  const int i = static_cast<int>(threadIdx.x);
  up[i] = __shfl_up_sync(kAll, i, 3, width);
  down[i] = __shfl_down_sync(kAll, i, 3, width);
  exchanged[i] = __shfl_xor_sync(kAll, i, 5, width);
  broadcast[i] = __shfl_sync(kAll, i, 2, width);
}

template <class T>
__global__ void reverse_lanes(const T* in, T* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  out[threadIdx.x] = __shfl_sync(kAll, in[threadIdx.x], 31 - lane);
}
template __global__ void reverse_lanes<int>(const int*, int*);
template __global__ void reverse_lanes<unsigned>(const unsigned*, unsigned*);
template __global__ void reverse_lanes<long long>(const long long*, long long*);
template __global__ void reverse_lanes<float>(const float*, float*);
template __global__ void reverse_lanes<double>(const double*, double*);

__global__ void votes(const int* predicate, unsigned* ballot, int* any, int* all) {
  const unsigned i = threadIdx.x;
  ballot[i] = __ballot_sync(kAll, predicate[i]);
  any[i] = __any_sync(kAll, predicate[i]) != 0;
  all[i] = __all_sync(kAll, predicate[i]) != 0;
}

__global__ void matches(const int* value, unsigned* any, unsigned* all) {
  const unsigned i = threadIdx.x;
  int same = 0;
  any[i] = __match_any_sync(kAll, value[i]);
  all[i] = __match_all_sync(kAll, value[i], &same);
}

__global__ void shuffle_from_absent_lane(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 20);
}

__global__ void half_warps(int* out) {
  // Two meetings at once in one warp, at different lines.
  int value = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 16) {
    for (int i = 0; i < 3; ++i) value = __shfl_xor_sync(0x0000ffffu, value, 1);
  } else {
    for (int i = 0; i < 5; ++i) value = __shfl_xor_sync(0xffff0000u, value, 1);
  }
  __syncwarp();
  out[threadIdx.x] = value;
}

__global__ void shuffle_after_exit(int* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_down_sync(kAll, static_cast<int>(threadIdx.x), 1);
}

__global__ void lane_outside_its_mask() { __syncwarp(0xfffffffeu); }  // [outside mask]

__global__ void lane_missing_from_meeting() {
  if (threadIdx.x == 9) {
    __syncthreads();  // [elsewhere]
  } else {
    __syncwarp();  // [meeting]
    __syncthreads();
  }
}

template <bool kWithSync>
__global__ void rotate_in_warp(int* out) {
  __shared__ int value[32];
  const unsigned i = threadIdx.x;
  value[i] = static_cast<int>(i);
  if (kWithSync) __syncwarp();
  out[i] = value[(i + 1) % 32];
}
template __global__ void rotate_in_warp<true>(int*);
template __global__ void rotate_in_warp<false>(int*);

__global__ void count_with_active_mask(unsigned* count) {
  if (threadIdx.x % 3 != 0) return;
  // One atomic for all lanes that happen to be active together.
  const unsigned active = __activemask();
  const unsigned rank = static_cast<unsigned>(__popc(active & ((1u << threadIdx.x % 32) - 1)));
  if (rank == 0) atomicAdd(count, static_cast<unsigned>(__popc(active)));
  __syncwarp(active);
}
