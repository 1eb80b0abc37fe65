#include <cuda_pipeline.h>

#include "kernels.hpp"

template <bool kWithWait>
__global__ void copy_asynchronously(const float* in, float* out) {
  __shared__ __align__(16) float tile[128];
  __pipeline_memcpy_async(&tile[4 * threadIdx.x], &in[4 * threadIdx.x], 16);
  __pipeline_commit();
  if (kWithWait) __pipeline_wait_prior(0);
  for (unsigned i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = tile[4 * threadIdx.x + i];
}
template __global__ void copy_asynchronously<true>(const float*, float*);
template __global__ void copy_asynchronously<false>(const float*, float*);

__global__ void zero_filled_copy(const float* in, float* out) {
  __shared__ __align__(16) float tile[4];
  __pipeline_memcpy_async(tile, in, 16, 8);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  for (int i = 0; i < 4; ++i) out[i] = tile[i];
}

__global__ void two_batches(const float* in, float* first, float* second) {
  __shared__ float tile[2];
  __pipeline_memcpy_async(&tile[0], &in[0], 4);
  __pipeline_commit();
  __pipeline_memcpy_async(&tile[1], &in[1], 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);  // the first has landed, the second need not have
  first[0] = tile[0];
  first[1] = tile[1];
  __pipeline_wait_prior(0);
  second[0] = tile[0];
  second[1] = tile[1];
}

__global__ void misaligned_copy(const float* in) {
  __shared__ __align__(16) float tile[8];
  __pipeline_memcpy_async(tile, in + 1, 16);  // [misaligned]
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void copy_behind(const float* in, int first, int zero_filled) {
  __shared__ __align__(16) float tile[4];
  const auto zeros = static_cast<std::size_t>(zero_filled);
  __pipeline_memcpy_async(tile, in + first, 16, zeros);  // [behind]
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void copy_by_some_threads(const float* in, float* out, int copiers) {
  __shared__ float tile[256];
  const int i = static_cast<int>(threadIdx.x);
  if (i < copiers) {
    __pipeline_memcpy_async(&tile[i], &in[i], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[i] = tile[i];
  }
}
