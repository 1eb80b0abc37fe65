/// @file atomic_four.hpp
/// @brief Four floats added to memory, each by an atomic addition.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// to[0 ... 3] += four, each addition atomic. One instruction from sm_90 on, for which `to` must be
/// a multiple of 16 bytes; four instructions on older GPUs.
__device__ inline void atomic_add_four(float* to, float4 four) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(to), four);
#else
  atomicAdd(to, four.x);
  atomicAdd(to + 1, four.y);
  atomicAdd(to + 2, four.z);
  atomicAdd(to + 3, four.w);
#endif
}

}  // namespace convladder::BACKEND
