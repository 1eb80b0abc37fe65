/// @file fft.hpp
/// @brief The rungs of fft: discrete Fourier transforms of lines
#pragma once

#include "core/fft_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(FftArrays, cpu_reference, fft, dft)
CPU_RUNG(FftArrays, cpu_reference, fft, radix2)
CPU_RUNG(FftArrays, cpu_reference, fft, stockham)
CUDA_RUNG(FftArrays, cuda_naive, fft, dft)
CUDA_RUNG(FftArrays, cuda_optimized, fft, passes)
CUDA_RUNG(FftArrays, cuda_optimized, fft, shared)
CUDA_RUNG(FftArrays, cuda_optimized, fft, registers)
CUDA_RUNG(FftArrays, cuda_optimized, fft, warp)
CUDA_RUNG(FftArrays, cuda_optimized, fft, four_step)
