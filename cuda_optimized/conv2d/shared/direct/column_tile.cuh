/// @file column_tile.cuh
/// @brief A thread's column of pixels for several filters: direct/register_tile.cu has a picture.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "cuda_optimized/conv2d/shared/direct/filter_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/load_vectors.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPixels = 8;  ///< Outputs of a thread, one below the other.

/// Adds one channel's products to the sums. `window` is the thread's place in the tile; `weights`
/// are [r][s][kTapPitch].
template <int kR, int kS, int kFilters>
__device__ void multiply(const Conv2dProblem& conv, const float* window, int pitch,
                         const float* weights, float (&sums)[kFilters][kPixels]) {
  if constexpr (kR > 0) {  // vertical stride and dilation are 1
#pragma unroll 1
    for (int s = 0; s < kS; ++s) {
      float values[kPixels + kR - 1];
#pragma unroll
      for (int i = 0; i < kPixels + kR - 1; ++i) {
        values[i] = window[i * pitch + s * conv.dilation.w];
      }
#pragma unroll
      for (int r = 0; r < kR; ++r) {
        float weight[kTapPitch<kFilters>];
        load_vectors(weights + (r * kS + s) * kTapPitch<kFilters>, weight);
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i + r] * weight[f];
        }
      }
    }
  } else {
    for (int r = 0; r < conv.R; ++r) {
      for (int s = 0; s < conv.S; ++s) {
        const float* column = window + r * conv.dilation.h * pitch + s * conv.dilation.w;
        float values[kPixels];
#pragma unroll
        for (int i = 0; i < kPixels; ++i) values[i] = column[i * conv.stride.h * pitch];
        float weight[kTapPitch<kFilters>];
        load_vectors(weights + (r * conv.S + s) * kTapPitch<kFilters>, weight);
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i] * weight[f];
        }
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
