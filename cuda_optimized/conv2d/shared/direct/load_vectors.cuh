/// @file load_vectors.cuh
/// @brief Neighbouring floats from shared memory into registers, in loads as wide as possible.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// kCount floats from `from` on, which is a multiple of 16 bytes if kCount is one of 4, and of 8 if
/// it is one of 2. Where a warp has one address, such as that of a tap's weights, it is a
/// broadcast.
template <int kCount>
__device__ void load_vectors(const float* from, float (&values)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 two = *reinterpret_cast<const float2*>(from + i);
      values[i] = two.x;
      values[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = from[i];
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
