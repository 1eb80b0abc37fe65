/// @file conv2d_dgrad.hpp
/// @brief The rungs of conv2d_dgrad: the gradient of a 2-D convolution with respect to its input.
#pragma once

#include "core/conv2d_gradients.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(Conv2dDgradArrays, cpu_reference, conv2d_dgrad, direct)
CPU_RUNG(Conv2dDgradArrays, cpu_reference, conv2d_dgrad, gemm_col2im)
CUDA_RUNG(Conv2dDgradArrays, cuda_naive, conv2d_dgrad, gather)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, gemm_col2im)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, depthwise_nchw)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, depthwise_nhwc)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, depthwise_nhwc_tiled)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_residue_classes)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, winograd_4x4)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, winograd_3xtf32)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_cp_async)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_split_k)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_few_channels)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_mma)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_mma_tf32)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_tf32)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, implicit_gemm_warp_specialized)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, hopper_halo_tile)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, hopper_cluster_split_k)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, hopper_full_tiles)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, hopper_weight_stationary)
CUDA_RUNG(Conv2dDgradArrays, cuda_optimized, conv2d_dgrad, hopper_strided_zeros)
