/// @file direct_batched.cuh
/// @brief The first matrix product on the GPU as a building block of convolutions;
/// direct_batched.cu has the kernel.
#pragma once

#include "core/cuda/batched_gemm.hpp"

namespace convladder::BACKEND::cuda_naive::gemm {

/// Computes the products; the matrices of c must not overlap.
void launch_gemm(const BatchedGemm& product);

}  // namespace convladder::BACKEND::cuda_naive::gemm
