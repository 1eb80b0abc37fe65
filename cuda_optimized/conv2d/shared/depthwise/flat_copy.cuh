/// @file flat_copy.cuh
/// @brief Copies of contiguous floats between global and shared memory, 16 bytes at a time,
/// wherever they begin.
///
/// A vector of 16 bytes lies at a multiple of 16, in both memories. So the copy in shared memory
/// begins as far behind such a multiple as the original does:
///
///     global  . x x x | x x x x | x x . .      vectors in the middle, single floats at the ends
///     shared  . x x x | x x x x | x x . .
///             ^ flat_phase() floats
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Floats between the last multiple of 16 bytes and `global`.
__device__ inline int flat_phase(const float* global) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(global) / sizeof(float) % 4);
}

/// `threads` threads, of which this is number `thread`, begin to copy `count` floats to shared +
/// flat_phase(global). `shared` is a multiple of 16 bytes. They have landed after
/// cp_async_wait_group() and a barrier.
__device__ inline void flat_load(float* shared, const float* global, int count, int thread,
                                 int threads) {
  const int phase = flat_phase(global);
  if (phase == 0 && count % 4 == 0) {  // only vectors
    for (int i = 4 * thread; i < count; i += 4 * threads) {
      ptx::cp_async<16>(shared + i, global + i);
    }
    return;
  }
  for (int v = thread; 4 * v < phase + count; v += threads) {
    const int first = 4 * v - phase;
    if (first >= 0 && first + 4 <= count) {
      ptx::cp_async<16>(shared + 4 * v, global + first);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (first + e >= 0 && first + e < count) {
          ptx::cp_async<4>(shared + 4 * v + e, global + (first + e));
        }
      }
    }
  }
}

/// The threads copy `count` floats from shared + flat_phase(global) to global memory.
__device__ inline void flat_store(const float* shared, float* global, int count, int thread,
                                  int threads) {
  const int phase = flat_phase(global);
  if (phase == 0 && count % 4 == 0) {  // only vectors
    for (int i = 4 * thread; i < count; i += 4 * threads) {
      *reinterpret_cast<float4*>(global + i) = *reinterpret_cast<const float4*>(shared + i);
    }
    return;
  }
  for (int v = thread; 4 * v < phase + count; v += threads) {
    const int first = 4 * v - phase;
    if (first >= 0 && first + 4 <= count) {
      *reinterpret_cast<float4*>(global + first) = *reinterpret_cast<const float4*>(shared + 4 * v);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (first + e >= 0 && first + e < count) global[first + e] = shared[4 * v + e];
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
