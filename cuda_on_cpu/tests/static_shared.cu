#include "kernels.hpp"
#include "shared_in_header.hpp"

// Each kernel runs in blocks of one thread: the memory that it finds was left by an earlier block,
// or is fresh.

__global__ void static_shared_is_fresh(unsigned* stale) {
  __shared__ float tile[16][17];
  __shared__ float4 vectors[8];
  unsigned mine = count_stale(tile, sizeof tile) + count_stale(vectors, sizeof vectors);
  if (blockIdx.x % 2 == 0) {
    __shared__ char only_in_some_blocks[100];
    mine += count_stale(only_in_some_blocks, sizeof only_in_some_blocks);
  }
  atomicAdd(stale, mine);
}

template <int kFloats>
__global__ void template_shared_is_fresh(unsigned* stale) {
  __shared__ float tile[kFloats];
  atomicAdd(stale, count_stale(tile, sizeof tile));
}
template __global__ void template_shared_is_fresh<5>(unsigned*);
template __global__ void template_shared_is_fresh<4096>(unsigned*);

__global__ void inline_shared_is_fresh(unsigned* stale) {
  atomicAdd(stale, count_stale_in_inline_function());
}

__global__ void write_static_shared(int variable, int byte) {
  __shared__ char chars[17];                  // [variable 0]
  __shared__ float floats[8];                 // [variable 1]
  __shared__ __align__(16) float aligned[3];  // [variable 2]
  char* const at = variable == 0   ? chars
                   : variable == 1 ? reinterpret_cast<char*>(floats)
                                   : reinterpret_cast<char*>(aligned);
  static_cast<volatile char*>(at)[byte] = 1;
}

__global__ void aligned_shared(unsigned long long* misalignment) {
  __shared__ char pad;
  __shared__ __align__(64) float tile[3];
  pad = static_cast<char>(blockIdx.x);
  *misalignment = reinterpret_cast<unsigned long long>(&tile[0]) % 64 + static_cast<unsigned>(pad);
}
