/// @file warp_specialized.cuh
/// @brief Sums over windows in half precision by wgmma, also for the input gradient;
/// warp_specialized.cu has the kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Computes the product. Returns without waiting. @param workspace part_floats(), if there are any
void launch_windows_half(const HalfProduct& product, const HalfArrays& arrays, float* workspace);

/// For a rung's choice: how it does so.
std::string windows_half_in_words(const HalfProduct& product);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
