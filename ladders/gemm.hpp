/// @file gemm.hpp
/// @brief The rungs of gemm: matrix product: c = a b
#pragma once

#include "core/gemm_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(GemmArrays, cpu_reference, gemm, triple_loop)
CPU_RUNG(GemmArrays, cpu_reference, gemm, eigen)
CPU_RUNG(GemmArrays, cpu_reference, gemm, blocked)
CUDA_RUNG(GemmArrays, cuda_naive, gemm, direct)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tiled)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, register_tile)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, vectorized)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, warp_tiles)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, double_buffered)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, cp_async)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, split_k)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, stream_k)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, mma_tf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, mma_3xtf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, mma_16bit)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_tf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_16bit)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_tma_store)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_registers)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_clusters)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_pingpong)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_epilogue)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_low_tiles)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_late_store)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_early_launch)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_last_round)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_tf32_swapped)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_3xtf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_fp8)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_fp8_registers)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, wgmma_fp8_three)
