/// @file halo_tile.cuh
/// @brief Halo-tile reuse in half precision, also for the input gradient;
/// halo_tile.cu has the kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Why the product is not computed like this, if so.
Declined why_no_halo_tile(const HalfProduct& product);

/// Computes the product. Returns without waiting.
void launch_halo_tile(const HalfProduct& product, const HalfArrays& arrays);

/// For a rung's choice: how it does so.
std::string halo_tile_in_words(const HalfProduct& product);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
