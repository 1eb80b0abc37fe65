#include "kernels.hpp"

__global__ void add_from_all(int* i, unsigned* u, unsigned long long* ull, float* f, double* d) {
  atomicAdd(i, -1);
  atomicAdd(u, 2);
  atomicAdd(ull, 1ull << 33);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  __threadfence();
}

__global__ void other_atomics(int* min, int* max, unsigned* bits, unsigned* inc, unsigned* dec,
                              int* cas) {
  const unsigned rank = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(min, static_cast<int>(rank) - 5);
  atomicMax(max, static_cast<int>(rank));
  atomicOr(&bits[0], 1u << rank % 32);
  atomicAnd(&bits[1], ~(1u << rank % 32));
  atomicXor(&bits[2], rank);
  atomicExch(&bits[3], 7u);
  atomicSub(&bits[4], 1u);
  atomicInc(inc, 9u);
  atomicDec(dec, 9u);
  // An addition implemented with compare-and-swap.
  int old = *static_cast<volatile int*>(cas);
  int seen;
  do {
    seen = old;
    old = atomicCAS(cas, seen, seen + 1);
  } while (old != seen);
}

__global__ void math_functions(float* f, int* i, unsigned* u) {
  int n = 0;
  f[n++] = fmaf(2.0f, 3.0f, 4.0f);
  f[n++] = __fmaf_rn(2.0f, 3.0f, 4.0f);
  f[n++] = rsqrtf(4.0f);
  f[n++] = __fdividef(1.0f, 4.0f);
  f[n++] = min(2.0f, 1.0f) + max(3, 2);
  f[n++] = __expf(0.0f);
  f[n++] = __int_as_float(0x3f800000);
  n = 0;
  i[n++] = __popc(0xf0f0u);
  i[n++] = __clz(1);
  i[n++] = __ffs(0) + __ffs(8);
  i[n++] = __mul24(-3, 5);
  i[n++] = min(-1, 3) + max(-1, 3);
  i[n++] = __float2int_rn(2.5f);
  n = 0;
  u[n++] = __brev(1u);
  u[n++] = __umulhi(0x80000000u, 6u);
  u[n++] = __umul24(0x1000003u, 2u);
  u[n++] = max(3u, 4u);
  u[n++] = __funnelshift_l(0x80000000u, 1u, 1);
}
