#include "sanitized.hpp"

__global__ void write_at(float* data, int index) { data[index] = 1.0f; }

__global__ void write_shared_at(int index) {
  static_cast<float*>(dynamic_shared_memory())[index] = 1.0f;
}

__global__ void write_static_shared_at(int index) {
  __shared__ float tile[4];
  tile[index] = 1.0f;
}

__global__ void write_local_at(float* out, int index) {
  volatile float local[4] = {};
  __syncthreads();
  volatile float* volatile pointer = local;  // so that the compiler cannot see the array
  pointer[index] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = local[0];
}

__global__ void sum_float4(const float* in, float* out) {
  const float4* const vector = reinterpret_cast<const float4*>(in);
  *out = vector->x + vector->y + vector->z + vector->w;
}
