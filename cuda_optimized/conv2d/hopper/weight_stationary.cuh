/// @file weight_stationary.cuh
/// @brief Weight-stationary 1 x 1 in half precision, also for the input gradient;
/// weight_stationary.cu has the kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Why the product is not computed like this, if so.
Declined why_not_weight_stationary(const HalfProduct& product);

/// Computes the product. Returns without waiting.
void launch_weight_stationary(const HalfProduct& product, const HalfArrays& arrays);

/// For a rung's choice: how it does so.
std::string weight_stationary_in_words(const HalfProduct& product);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
