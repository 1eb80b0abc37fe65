/// @file col2im_strided_steps.cuh
/// @brief col2im as a building block of other rungs; col2im_strided_steps.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::col2im {

/// col [N][rows][columns] to x [N][C][D][H][W], as the problem's request says: one launch.
void launch_col2im_strided_steps(const Im2colProblem& problem, const float* col, float* x);

}  // namespace convladder::BACKEND::cuda_optimized::col2im
