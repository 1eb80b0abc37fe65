// In brackets: marks with which the tests find the line that a report must name.

// Assertions are tested in every build type.
#undef NDEBUG

#include <assert.h>
#include <stdio.h>

#include "kernels.hpp"

__global__ void reduce_tree(const int* in, int* out) {
  __shared__ int value[256];
  const unsigned i = threadIdx.x;
  value[i] = in[blockIdx.x * 256 + i];
  for (unsigned half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (i < half) value[i] += value[i + half];
  }
  if (i == 0) out[blockIdx.x] = value[0];
}

__global__ void barrier_votes(const int* predicate, int* count, int* all, int* any) {
  const unsigned i = threadIdx.x;
  count[i] = __syncthreads_count(predicate[i]);
  all[i] = __syncthreads_and(predicate[i]) != 0;
  any[i] = __syncthreads_or(predicate[i]) != 0;
}

__global__ void barriers_at_two_lines() {
  if (threadIdx.x < 5) {
    __syncthreads();  // [then]
  } else {
    __syncthreads();  // [else]
  }
}

__global__ void barrier_after_return() {
  if (threadIdx.x == 7) return;
  __syncthreads();  // [after return]
}

__global__ void barrier_in_loop_of_different_length() {
  for (unsigned i = 0; i <= threadIdx.x; ++i) __syncthreads();  // [in loop]
}

namespace {

struct CountsItsEnd {
  int* count;
  __device__ ~CountsItsEnd() { atomicAdd(count, 1); }
};

}  // namespace

__global__ void destroy_locals_in_failure(int* destroyed) {
  const CountsItsEnd local{destroyed};
  if (threadIdx.x == 0) return;
  __syncthreads();
}

__device__ int recurse(int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = 1;
  return depth == 0 ? 0 : recurse(depth - 1) + frame[depth % 1024];
}

__global__ void recurse_deeply(int* out, int depth) { *out = recurse(depth); }

__global__ void call_trap() {
  if (threadIdx.x == 3) __trap();  // [trap]
}

__global__ void check_assertion(int value) {
  assert(value == 0);  // [assertion]
}

__global__ void print_hello() { printf("hello from thread %u\n", threadIdx.x); }
