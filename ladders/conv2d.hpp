/// @file conv2d.hpp
/// @brief The rungs of conv2d: 2-D convolution, forward: y = x * w + bias
#pragma once

#include "core/conv2d_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(Conv2dArrays, cpu_reference, conv2d, direct)
CPU_RUNG(Conv2dArrays, cpu_reference, conv2d, reordered)
CPU_RUNG(Conv2dArrays, cpu_reference, conv2d, im2col_gemm)
CPU_RUNG(Conv2dArrays, cpu_reference, conv2d, implicit_gemm)
CUDA_RUNG(Conv2dArrays, cuda_naive, conv2d, direct)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_tiled)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_constant_weights)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_register_tile)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_float4)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_double_buffered)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_cp_async)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_row_tile)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_deinterleaved)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_register_window)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, depthwise)
CUDA_RUNG(Conv2dArrays, cuda_naive, conv2d, im2col_gemm)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, im2col_gemm_chunks)
CUDA_RUNG(Conv2dArrays, cuda_naive, conv2d, implicit_gemm)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_tiled)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_register_tile)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_hoisted)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_vectorized)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_cp_async)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_split_k)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_mma_tf32)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, implicit_gemm_wgmma_tf32)
CUDA_RUNG(Conv2dArrays, cuda_optimized, conv2d, direct_mma_tf32)
