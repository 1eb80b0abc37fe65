/// @file direct_batched.cu
/// @brief The GEMM of direct.cu for convolutions: arbitrary strides, and one GEMM per image and
/// group.
#include "cuda_naive/gemm/direct_batched.cuh"

namespace convladder::BACKEND::cuda_naive::gemm {
namespace {

constexpr int kBlockN = 32;  ///< Threads along n: one warp, 128 bytes of a row of c.
constexpr int kBlockM = 8;   ///< Threads along m.

/// One thread per element of c. Launch with grid (ceil(N/32), <= ceil(M/8), <= images * groups),
/// block (32, 8).
__global__ void gemm_direct_batched(BatchedGemm product) {
  const std::int64_t n = std::int64_t{blockIdx.x} * kBlockN + threadIdx.x;
  if (n >= product.N) return;
  const int column = static_cast<int>(n);
  const std::int64_t products = std::int64_t{product.images} * product.groups;
  // grid.y and grid.z are limited to 65535: with more rows or GEMMs, a thread computes several
  // elements.
  for (std::int64_t z = blockIdx.z; z < products; z += gridDim.z) {
    const int image = static_cast<int>(z / product.groups);
    const int group = static_cast<int>(z % product.groups);
    for (std::int64_t m = std::int64_t{blockIdx.y} * kBlockM + threadIdx.y; m < product.M;
         m += std::int64_t{gridDim.y} * kBlockM) {
      const int row = static_cast<int>(m);
      float sum = product.bias ? product.bias[std::int64_t{group} * product.M + row] : 0.0f;
      for (int k = 0; k < product.K; ++k) {
        sum += product.a.at(image, group, row, k) * product.b.at(image, group, k, column);
      }
      float& c = product.c.at(image, group, row, column);
      c = product.accumulate ? c + sum : sum;
    }
  }
}

}  // namespace

void launch_gemm(const BatchedGemm& product) {
  const dim3 grid(blocks_for(product.N, kBlockN), blocks_for(product.M, kBlockM, kMaxGridYZ),
                  blocks_for(std::int64_t{product.images} * product.groups, 1, kMaxGridYZ));
  launch(gemm_direct_batched, {grid, dim3(kBlockN, kBlockM)}, product);
}

}  // namespace convladder::BACKEND::cuda_naive::gemm
