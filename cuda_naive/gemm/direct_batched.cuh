/// @file direct_batched.cuh
/// @brief The naive CUDA GEMM as a building block of convolutions; the kernel is in
/// direct_batched.cu.
#pragma once

#include "core/cuda/batched_gemm.hpp"

namespace convladder::BACKEND::cuda_naive::gemm {

/// Computes the GEMMs; the matrices c must not overlap.
void launch_gemm(const BatchedGemm& product);

}  // namespace convladder::BACKEND::cuda_naive::gemm
