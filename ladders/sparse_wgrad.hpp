/// @file sparse_wgrad.hpp
/// @brief The rungs of sparse_wgrad: the gradient of a sparse convolution with respect to its
/// weights.
#pragma once

#include "core/sparse_conv_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseWgradArrays, cpu_reference, sparse_wgrad, direct)
CPU_RUNG(SparseWgradArrays, cpu_reference, sparse_wgrad, gather_gemm_scatter)
CUDA_RUNG(SparseWgradArrays, cuda_naive, sparse_wgrad, scatter)
CUDA_RUNG(SparseWgradArrays, cuda_optimized, sparse_wgrad, output_stationary)
CUDA_RUNG(SparseWgradArrays, cuda_optimized, sparse_wgrad, split_k_atomics)
CUDA_RUNG(SparseWgradArrays, cuda_optimized, sparse_wgrad, split_k)
CUDA_RUNG(SparseWgradArrays, cuda_optimized, sparse_wgrad, split_k_mma)
CUDA_RUNG(SparseWgradArrays, cuda_optimized, sparse_wgrad, split_k_wgmma)
