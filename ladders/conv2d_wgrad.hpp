/// @file conv2d_wgrad.hpp
/// @brief The rungs of conv2d_wgrad: the gradients of a 2-D convolution with respect to its weights
/// and bias.
#pragma once

#include "core/conv2d_gradients.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(Conv2dWgradArrays, cpu_reference, conv2d_wgrad, direct)
CPU_RUNG(Conv2dWgradArrays, cpu_reference, conv2d_wgrad, im2col_gemm)
CPU_RUNG(Conv2dWgradArrays, cpu_reference, conv2d_wgrad, winograd_2x2)
CPU_RUNG(Conv2dWgradArrays, cpu_reference, conv2d_wgrad, winograd)
CUDA_RUNG(Conv2dWgradArrays, cuda_naive, conv2d_wgrad, gather)
CUDA_RUNG(Conv2dWgradArrays, cuda_naive, conv2d_wgrad, winograd_2x2)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, im2col_gemm)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, depthwise_nchw)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, depthwise_nhwc)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, depthwise_nhwc_tiled)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_register_tile)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_split_k)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_cp_async)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, winograd_3xtf32)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_mma)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_mma_tf32)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, implicit_gemm_warp_specialized)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, hopper_halo_tile)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, hopper_cluster_reduction)
CUDA_RUNG(Conv2dWgradArrays, cuda_optimized, conv2d_wgrad, hopper_split_k_1x1)
