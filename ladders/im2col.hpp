/// @file im2col.hpp
/// @brief The rungs of im2col: the windows of an input as the columns of a matrix, in 1, 2 or 3
/// dimensions.
#pragma once

#include "core/im2col_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(Im2colArrays, cpu_reference, im2col, im2col)
CPU_RUNG(Im2colArrays, cpu_reference, im2col, im2row)
CUDA_RUNG(Im2colArrays, cuda_naive, im2col, im2col)
CUDA_RUNG(Im2colArrays, cuda_optimized, im2col, im2col_batched)
CUDA_RUNG(Im2colArrays, cuda_optimized, im2col, im2col_vectorized)
CUDA_RUNG(Im2colArrays, cuda_optimized, im2col, im2row)
