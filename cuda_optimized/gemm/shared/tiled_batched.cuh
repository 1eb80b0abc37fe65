/// @file tiled_batched.cuh
/// @brief Batched GEMM with tiles in shared memory, a building block of convolutions;
/// tiled_batched.cu has the kernel.
#pragma once

#include "core/cuda/batched_gemm.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Computes the products. The matrices of c must not overlap.
/// @throws BadInput if there are more tiles of 32 x 32 than a grid has blocks (2^31 - 1).
void launch_gemm_tiled(const BatchedGemm& product);

}  // namespace convladder::BACKEND::cuda_optimized::gemm
