/// @file 3xtf32.cuh
/// @brief The convolution of 3xtf32.cu, also for the input gradient.
#pragma once

#include "cuda_optimized/conv2d/winograd/4x4.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Nothing, or why 3xtf32.cu does not compute it.
Declined why_no_winograd_3xtf32(const Conv2dProblem& conv);
/// Of U, V and M.
std::size_t winograd_3xtf32_bytes(const Conv2dProblem& conv);
/// Computes y. @param workspace winograd_3xtf32_bytes() of them
void launch_winograd_3xtf32(const Conv2dProblem& conv, const Conv2dArrays& arrays,
                            WeightsOrder order, float* workspace);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
