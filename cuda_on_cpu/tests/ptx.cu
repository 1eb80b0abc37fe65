#include <cuda_on_cpu/ptx.hpp>

#include "kernels.hpp"

namespace ptx = cuda_on_cpu::ptx;

__global__ void load_matrices(const unsigned* in, unsigned* x1, unsigned* x2, unsigned* x4) {
  __shared__ __align__(16) unsigned rows[32][4];
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 4; ++i) rows[lane][i] = in[4 * lane + i];
  __syncwarp();
  unsigned one[1], two[2], four[4];
  ptx::ldmatrix_x1(one, rows[lane]);
  ptx::ldmatrix_x2(two, rows[lane]);
  ptx::ldmatrix_x4(four, rows[lane]);
  // A lane that continues first must not disturb the other lanes, which have met but not left yet.
  for (unsigned i = 0; i < 4; ++i) rows[lane][i] = 0;
  x1[lane] = one[0];
  for (unsigned i = 0; i < 2; ++i) x2[2 * lane + i] = two[i];
  for (unsigned i = 0; i < 4; ++i) x4[4 * lane + i] = four[i];
}

__global__ void load_transposed_matrices(const unsigned* in, unsigned* x2, unsigned* x4) {
  __shared__ __align__(16) unsigned rows[32][4];
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 4; ++i) rows[lane][i] = in[4 * lane + i];
  __syncwarp();
  unsigned two[2], four[4];
  ptx::ldmatrix_x2_trans(two, rows[lane]);
  ptx::ldmatrix_x4_trans(four, rows[lane]);
  for (unsigned i = 0; i < 4; ++i) rows[lane][i] = 0;
  for (unsigned i = 0; i < 2; ++i) x2[2 * lane + i] = two[i];
  for (unsigned i = 0; i < 4; ++i) x4[4 * lane + i] = four[i];
}

__global__ void store_transposed_matrices(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned rows[32][4];
  const unsigned lane = threadIdx.x;
  unsigned fragment[4];
  for (unsigned i = 0; i < 4; ++i) fragment[i] = in[4 * lane + i];
  ptx::stmatrix_x4_trans(rows[lane], fragment);
  __syncwarp();
  for (unsigned i = 0; i < 4; ++i) out[4 * lane + i] = rows[lane][i];
}

__global__ void store_misaligned_matrix() {
  __shared__ __align__(16) unsigned rows[36][4];
  const unsigned fragment[4] = {};
  ptx::stmatrix_x4_trans(&rows[threadIdx.x][threadIdx.x == 7], fragment);  // [misaligned store]
}

__global__ void load_misaligned_matrix() {
  __shared__ __align__(16) unsigned rows[36][4];
  unsigned fragment[4];
  ptx::ldmatrix_x4(fragment, &rows[threadIdx.x][threadIdx.x == 5]);  // [misaligned row]
}

__global__ void multiply_matrices(const unsigned* a, const unsigned* b, float* d) {
  const unsigned lane = threadIdx.x, group = lane / 4, place = lane % 4;
  unsigned mine_a[4], mine_b[2];
  float mine_d[4];
  for (unsigned i = 0; i < 4; ++i) mine_a[i] = a[(group + i % 2 * 8) * 8 + place + i / 2 * 4];
  for (unsigned i = 0; i < 2; ++i) mine_b[i] = b[(place + i * 4) * 8 + group];
  for (unsigned i = 0; i < 4; ++i) mine_d[i] = d[(group + i / 2 * 8) * 8 + 2 * place + i % 2];
  ptx::mma_m16n8k8_tf32(mine_d, mine_a, mine_b);
  for (unsigned i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + 2 * place + i % 2] = mine_d[i];
}

__global__ void multiply_half_matrices(const unsigned short* a, const unsigned short* b,
                                       bool bfloat, float* d) {
  const unsigned lane = threadIdx.x, group = lane / 4, place = lane % 4;
  unsigned mine_a[4], mine_b[2];
  float mine_d[4];
  const auto pair = [](unsigned low, unsigned high) { return low | high << 16; };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned short* const at = a + (group + i % 2 * 8) * 16 + 2 * place + i / 2 * 8;
    mine_a[i] = pair(at[0], at[1]);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned short* const at = b + (2 * place + i * 8) * 8 + group;
    mine_b[i] = pair(at[0], at[8]);
  }
  for (unsigned i = 0; i < 4; ++i) mine_d[i] = d[(group + i / 2 * 8) * 8 + 2 * place + i % 2];
  if (bfloat) {
    ptx::mma_m16n8k16_bf16(mine_d, mine_a, mine_b);
  } else {
    ptx::mma_m16n8k16_f16(mine_d, mine_a, mine_b);
  }
  for (unsigned i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + 2 * place + i % 2] = mine_d[i];
}

__global__ void multiply_in_part_of_a_warp() {
  if (threadIdx.x >= 20) return;
  const unsigned a[4] = {}, b[2] = {};
  float d[4] = {};
  ptx::mma_m16n8k8_tf32(d, a, b);  // [not all lanes]
}
