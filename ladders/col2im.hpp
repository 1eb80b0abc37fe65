/// @file col2im.hpp
/// @brief The rungs of col2im: the adjoint of im2col, which sums columns back into the shape of the
/// input.
#pragma once

#include "core/im2col_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(Col2imArrays, cpu_reference, col2im, col2im)
CUDA_RUNG(Col2imArrays, cuda_naive, col2im, col2im)
CUDA_RUNG(Col2imArrays, cuda_optimized, col2im, col2im_batched)
CUDA_RUNG(Col2imArrays, cuda_optimized, col2im, col2im_strided_steps)
CUDA_RUNG(Col2imArrays, cuda_optimized, col2im, col2im_vectorized)
