/// @file sum_splits.cuh
/// @brief Split-K reduction: the second kernel, which adds the parts of several blocks in a fixed
/// order.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kFlatThreads = 256;  ///< Threads of a block that goes through an array.
inline constexpr std::int64_t kMaxFlatBlocks = 1056;  ///< Such blocks, at most.

/// out [count] = bias + the parts [splits][count] in their order. `bias` [channels] or null: of
/// element i, bias[i / inner % channels]; without kPlanes, inner is 1. Whole sums are activated and
/// rounded.
/// Grid <= kMaxFlatBlocks, block kFlatThreads.
template <bool kPlanes, class T>
__global__ void conv2d_sum_splits(const float* parts, int splits, std::int64_t count,
                                  const float* bias, std::int64_t inner, int channels,
                                  Activation activation, T* out) {
  for (const std::int64_t i : grid_stride<kFlatThreads>(count)) {
    float sum = bias != nullptr ? bias[(kPlanes ? i / inner : i) % channels] : 0.0f;
#pragma unroll 4
    for (int split = 0; split < splits; ++split) sum += parts[split * count + i];
    out[i] = rounded_to<T>(activated(activation, sum));
  }
}

/// Launches sum_splits on as many blocks as `count` elements need, at most kMaxFlatBlocks.
template <class T>
void launch_sum_splits(const float* parts, int splits, std::int64_t count, const float* bias,
                       std::int64_t inner, int channels, Activation activation, T* out) {
  launch(inner == 1 ? conv2d_sum_splits<false, T> : conv2d_sum_splits<true, T>,
         {blocks_for(count, kFlatThreads, kMaxFlatBlocks), kFlatThreads}, parts, splits, count,
         bias, inner, channels, activation, out);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
