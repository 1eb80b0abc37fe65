#include "kernels.hpp"
#include "shared_in_header.hpp"

__global__ void inline_shared_is_fresh_elsewhere(unsigned* stale) {
  __shared__ int own[3];
  atomicAdd(stale, count_stale(own, sizeof own) + count_stale_in_inline_function());
}

__global__ void other_file_shared_is_fresh(unsigned* stale) {
  __shared__ float tile[16][17];
  atomicAdd(stale, count_stale(tile, sizeof tile));
}
