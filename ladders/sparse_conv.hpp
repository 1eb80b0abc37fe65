/// @file sparse_conv.hpp
/// @brief The rungs of sparse_conv: sparse convolution over a rulebook, y[out] += features[in] *
/// weights[k].
#pragma once

#include "core/sparse_conv_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseConvArrays, cpu_reference, sparse_conv, direct)
CPU_RUNG(SparseConvArrays, cpu_reference, sparse_conv, gather_gemm_scatter)
CUDA_RUNG(SparseConvArrays, cuda_naive, sparse_conv, scatter)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, output_stationary)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, gather_gemm_scatter)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, grouped_gemm)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, fetch_on_demand)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_sorted)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_split_masks)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_cp_async)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_mma)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_wgmma)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_warp_specialized)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_fused_sort)
CUDA_RUNG(SparseConvArrays, cuda_optimized, sparse_conv, implicit_gemm_direct_fragments)
