/// @file wgmma_3xtf32.cuh
/// @brief Batched GEMM of wgmma_3xtf32.cu, a building block of convolutions.
#pragma once

#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// c = a b for each of them. The matrices lie one after the other, and are aligned to 16 bytes.
struct Products3xTf32 {
  int products;    ///< How many.
  int M, N, K;     ///< Of each; multiples of 64, 4 and 32, unless there is one product.
  int splits = 1;  ///< Parts of each sum, which follow one another in c: [splits][products][M][N]
  const float* a;  ///< [products][M][K]
  const float* b;  ///< [products][K][N]
  float* c;        ///< [products][M][N], for each part
};

/// Computes them. The device has compute capability 9.0, see why_no_wgmma(); splits * products * M
/// and products * K are below 2^31.
void launch_gemm_wgmma_3xtf32(const Products3xTf32& product);

}  // namespace convladder::BACKEND::cuda_optimized::gemm
