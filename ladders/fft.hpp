/// @file fft.hpp
/// @brief The rungs of fft: discrete Fourier transforms of lines and planes.
#pragma once

#include "core/fft_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(FftArrays, cpu_reference, fft, dft)
CPU_RUNG(FftArrays, cpu_reference, fft, radix2)
CPU_RUNG(FftArrays, cpu_reference, fft, stockham)
CPU_RUNG(FftArrays, cpu_reference, fft, real_pairs)
CPU_RUNG(FftArrays, cpu_reference, fft, real_pairs_inverse)
CPU_RUNG(FftArrays, cpu_reference, fft, rows_and_columns)
CPU_RUNG(FftArrays, cpu_reference, fft, bluestein)
CUDA_RUNG(FftArrays, cuda_naive, fft, dft)
CUDA_RUNG(FftArrays, cuda_optimized, fft, passes)
CUDA_RUNG(FftArrays, cuda_optimized, fft, shared_memory)
CUDA_RUNG(FftArrays, cuda_optimized, fft, radix8)
CUDA_RUNG(FftArrays, cuda_optimized, fft, radix16)
CUDA_RUNG(FftArrays, cuda_optimized, fft, real_pairs)
CUDA_RUNG(FftArrays, cuda_optimized, fft, real_pairs_inverse)
CUDA_RUNG(FftArrays, cuda_optimized, fft, plane)
CUDA_RUNG(FftArrays, cuda_optimized, fft, warp)
CUDA_RUNG(FftArrays, cuda_optimized, fft, four_step)
CUDA_RUNG(FftArrays, cuda_optimized, fft, rows_and_columns)
CUDA_RUNG(FftArrays, cuda_optimized, fft, bluestein)
