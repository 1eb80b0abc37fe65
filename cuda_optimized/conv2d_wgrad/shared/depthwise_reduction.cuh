/// @file depthwise_reduction.cuh
/// @brief The reduction of a filter's sums in a fixed order: over the lanes of a warp, and over the
/// blocks that share a filter.
#pragma once

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/depthwise_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// Adds `sums` up over the lanes of a warp. Two lanes that are kStep apart each take one half of
/// the sums and give away the other: 5 + 3 + 2 + 1 + 1 shuffles for 10 sums, not 10 * 5. In the end
/// a lane has sum number `first`, if `count` (at first kCount) is positive.
template <int kStep, int kCount>
__device__ float add_lanes(const float (&sums)[kCount], int lane, int& first, int& count) {
  if constexpr (kStep == 0) {
    static_assert(kCount == 1, "as many sums as lanes, at most");
    return sums[0];
  } else {
    constexpr int kHalf = (kCount + 1) / 2;
    const bool upper = (lane & kStep) != 0;
    float half[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float above = i + kHalf < kCount ? sums[i + kHalf] : 0.0f;
      half[i] =
          (upper ? above : sums[i]) + __shfl_xor_sync(0xffffffffu, upper ? sums[i] : above, kStep);
    }
    if (upper) first += kHalf;
    count = upper ? count - kHalf : min(count, kHalf);
    return add_lanes<kStep / 2>(half, lane, first, count);
  }
}

/// Writes a filter's sum where it belongs: to dw and db, or to the accumulators of a split.
__device__ inline void write_sum(const DepthwisePlan& plan, std::int64_t filters, int split,
                                 std::int64_t k, int column, float sum, float* dw, float* db,
                                 float* parts) {
  if (plan.splits > 1) {
    parts[(split * filters + k) * plan.columns + column] = sum;
  } else if (column < plan.columns - 1) {
    dw[k * (plan.columns - 1) + column] = sum;
  } else {
    db[k] = sum;
  }
}

/// Adds the splits, in their order. parts [splits][K][columns]. Grid any, block kDepthwiseThreads.
static __global__ void conv2d_wgrad_add_splits(DepthwisePlan plan, std::int64_t filters,
                                               const float* parts, float* dw, float* db) {
  const std::int64_t count = filters * plan.columns;
  for (const std::int64_t i : grid_stride<kDepthwiseThreads>(count)) {
    float sum = parts[i];
    for (int split = 1; split < plan.splits; ++split) sum += parts[split * count + i];
    const int column = static_cast<int>(i % plan.columns);
    const std::int64_t k = i / plan.columns;
    if (column < plan.columns - 1) {
      dw[k * (plan.columns - 1) + column] = sum;
    } else {
      db[k] = sum;
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
