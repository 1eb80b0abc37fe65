/// @file sum_pixels.cuh
/// @brief The bias gradient in NHWC: the sums of dy's columns, in an order that does not change.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kSumColumns = 32, kSumRows = 16;  ///< Threads of a block: filters by pixels.
inline constexpr int kMostSlices = 64;                 ///< Of all pixels.

/// Slices of the pixels: a thread adds up eight at least.
inline int slices_of(const Conv2dProblem& conv) {
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  return static_cast<int>(
      std::clamp<std::int64_t>(pixels / (8 * kSumRows), 1, std::int64_t{kMostSlices}));
}

/// Floats of the slices' sums.
inline std::int64_t sum_pixels_floats(const Conv2dProblem& conv) {
  return std::int64_t{slices_of(conv)} * conv.K;
}

/// parts [slices][K] of the sums of dy [pixels][K]. Grid (ceil(K / 32), slices), block (32, 16).
template <class T>
__global__ void conv2d_wgrad_sum_pixels(const T* dy, std::int64_t pixels, int K, float* parts) {
  __shared__ float sums[kSumRows][kSumColumns];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int k = static_cast<int>(blockIdx.x) * kSumColumns + tx;
  float sum = 0.0f;
  if (k < K) {
#pragma unroll 8
    for (std::int64_t pixel = std::int64_t{blockIdx.y} * kSumRows + ty; pixel < pixels;
         pixel += std::int64_t{gridDim.y} * kSumRows) {
      sum += to_float(dy[pixel * K + k]);
    }
  }
  sums[ty][tx] = sum;
  __syncthreads();  // separates these stores from the loads below
  if (ty > 0 || k >= K) return;
  for (int row = 1; row < kSumRows; ++row) sum += sums[row][tx];
  parts[std::int64_t{blockIdx.y} * K + k] = sum;
}

/// Launches the sums of the slices, and their sum. @param parts of sum_pixels_floats()
template <class T>
void launch_sum_pixels(const Conv2dProblem& conv, const T* dy, float* parts, float* db) {
  const int slices = slices_of(conv);
  launch(conv2d_wgrad_sum_pixels<T>,
         {dim3(blocks_for(conv.K, kSumColumns), static_cast<unsigned>(slices)),
          dim3(kSumColumns, kSumRows)},
         dy, std::int64_t{conv.N} * conv.P * conv.Q, conv.K, parts);
  conv2d::launch_sum_splits(parts, slices, conv.K, nullptr, 1, 1, Activation::none, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
