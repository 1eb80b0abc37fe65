/// @file 4x4.cuh
/// @brief Winograd's F(4 x 4, 3 x 3) in steps, for all rungs that have its tiles; 4x4.cu
/// has the kernels.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/winograd/winograd_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kFrequencies4x4 = 36;  ///< Products of a tile, and matrices.

/// Nothing, or why these kernels do not compute it.
Declined why_no_tiles_4x4(const Conv2dProblem& conv);
/// The products for so many of the problem's tiles.
WinogradProduct product_4x4(const Conv2dProblem& conv, std::int64_t tiles);
/// Which tiles of the product those are, in words.
std::string product_4x4_in_words(const Conv2dProblem& conv, std::int64_t tiles);

/// How a convolution's filters lie in memory.
enum class WeightsOrder {
  as_they_are,  ///< [K][C/groups][3][3]
  turned,       ///< [groups][C/groups][K/groups][3][3], by 180 degrees: of a gradient by the input
};

/// U of the weights, where product_4x4() says.
void launch_weights_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        const float* weights, WeightsOrder order, float* u);
/// V of x's windows for the tiles first ... first + tiles - 1. @param v [frequency][group][k][n]
void launch_windows_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        std::int64_t first, std::int64_t tiles, const float* x, float* v);
/// Those tiles of y, by the products. @param m [frequency][group][m][n]
void launch_outputs_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        std::int64_t first, std::int64_t tiles, const float* m,
                        const Conv2dArrays& arrays);
/// All three: V, the products and y. @param v_and_m room for V and for M after it
void launch_tiles_4x4(const Conv2dProblem& conv, const WinogradProduct& product, std::int64_t first,
                      std::int64_t tiles, const Conv2dArrays& arrays, const float* u,
                      float* v_and_m);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
