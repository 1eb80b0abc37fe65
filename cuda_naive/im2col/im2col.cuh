/// @file im2col.cuh
/// @brief im2col as a building block of other rungs; im2col.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"

namespace convladder::BACKEND::cuda_naive::im2col {

/// x [N][C][D][H][W] to col [N][rows][columns], as the problem's request says: a launch an image.
void launch_im2col(const Im2colProblem& problem, const float* x, float* col);

}  // namespace convladder::BACKEND::cuda_naive::im2col
