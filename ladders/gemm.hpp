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
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tf32_mma)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tf32_mma_3xtf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, mma_16bit)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tf32_wgmma)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, persistent)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tma_store)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, setmaxnreg)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, clusters)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, hopper_ping_pong)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, fused_epilogue)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, hopper_small_tiles)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, overlapped_epilogue)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, hopper_pdl)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, hopper_split_k_tail)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tf32_swap_ab)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, tf32_wgmma_3xtf32)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, fp8_wgmma)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, fp8_taller_tiles)
CUDA_RUNG(GemmArrays, cuda_optimized, gemm, fp8_three_consumers)
