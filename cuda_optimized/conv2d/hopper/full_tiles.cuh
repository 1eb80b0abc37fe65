/// @file full_tiles.cuh
/// @brief Tiles without padding columns in half precision, also for the input gradient;
/// full_tiles.cu has the kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Why the product is not computed like this, if so.
Declined why_no_full_tiles(const HalfProduct& product);

/// Computes the product. Returns without waiting.
void launch_full_tiles(const HalfProduct& product, const HalfArrays& arrays);

/// For a rung's choice: how it does so.
std::string full_tiles_in_words(const HalfProduct& product);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
