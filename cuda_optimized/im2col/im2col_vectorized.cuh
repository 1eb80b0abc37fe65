/// @file im2col_vectorized.cuh
/// @brief im2col as a building block of other rungs; im2col_vectorized.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::im2col {

/// x [N][C][D][H][W] to col [N][rows][columns], as the problem's request says: one launch.
/// @param streaming the columns are not read again soon, and need no place in the caches
void launch_im2col_vectorized(const Im2colProblem& problem, const float* x, float* col,
                              bool streaming);

/// What it chooses for a problem, in a few words.
std::string im2col_vectorized_in_words(const Im2colProblem& problem);

/// Why it does not take a problem.
Declined too_large_for_im2col_vectorized(const Im2colProblem& problem);

}  // namespace convladder::BACKEND::cuda_optimized::im2col
