/// @file sparse_dgrad.hpp
/// @brief The rungs of sparse_dgrad: the gradient of a sparse convolution with respect to its
/// features.
#pragma once

#include "core/sparse_conv_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseDgradArrays, cpu_reference, sparse_dgrad, direct)
CPU_RUNG(SparseDgradArrays, cpu_reference, sparse_dgrad, gather_gemm_scatter)
CUDA_RUNG(SparseDgradArrays, cuda_naive, sparse_dgrad, scatter)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, output_stationary)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, implicit_gemm)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, mirrored_table)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, implicit_gemm_cp_async)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, implicit_gemm_mma)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, implicit_gemm_warp_specialized)
CUDA_RUNG(SparseDgradArrays, cuda_optimized, sparse_dgrad, implicit_gemm_fused_sort)
