/// @file four_columns.cuh
/// @brief Four neighbouring columns of x as one vector, wherever the padding begins: as in
/// direct/float4.cu, for the rungs above it.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where four neighbouring columns of x lie.
struct Four {
  std::int64_t offset;  ///< of the first one, from the beginning of its channel
  unsigned inside;      ///< Bit e is set if column e is in x, not in the padding.
};

/// Columns w ... w + 3 of row h; w is a multiple of 4. Negative coordinates have turned into huge
/// unsigned ones, so that one comparison checks both ends.
__device__ inline Four four_at(const Conv2dProblem& conv, unsigned h, unsigned w) {
  unsigned inside = 0;
  if (h < static_cast<unsigned>(conv.H)) {
#pragma unroll
    for (unsigned e = 0; e < 4; ++e) {
      if (w + e < static_cast<unsigned>(conv.W)) inside |= 1u << e;
    }
  }
  return {inside != 0 ? std::int64_t{h} * conv.W + w : 0, inside};
}

/// Their values in one channel, zeros for the padding.
/// @param aligned x lies at a multiple of 16 bytes, and W is a multiple of 4
__device__ inline float4 load4(const float* channel, Four four, bool aligned) {
  const float* x = channel + four.offset;
  float4 values = {0.0f, 0.0f, 0.0f, 0.0f};
  if (aligned) {  // all four are in x, or none
    if (four.inside != 0) values = *reinterpret_cast<const float4*>(x);
  } else {
    if (four.inside & 1) values.x = x[0];
    if (four.inside & 2) values.y = x[1];
    if (four.inside & 4) values.z = x[2];
    if (four.inside & 8) values.w = x[3];
  }
  return values;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
