/// @file cluster_split_k.cuh
/// @brief Split-K over a cluster of two blocks in half precision, also for the input gradient;
/// cluster_split_k.cu has the kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Why the product is not computed like this, if so.
Declined why_no_cluster_split_k(const HalfProduct& product);

/// Computes the product. Returns without waiting.
void launch_cluster_split_k(const HalfProduct& product, const HalfArrays& arrays);

/// For a rung's choice: how it does so.
std::string cluster_split_k_in_words(const HalfProduct& product);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
