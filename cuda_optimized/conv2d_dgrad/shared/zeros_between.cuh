/// @file zeros_between.cuh
/// @brief How warps write the zeros between the pixels of dx that a tap reaches, for
/// hopper/strided_zeros.cu.
#pragma once

#include "core/cuda/cache_hints.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

/// Stores 16 bytes of zeros a lane to `count` numbers; or, without `vectors`, a number. By a warp.
template <class T>
__device__ void store_zeros(T* to, std::int64_t count, bool vectors, std::uint64_t policy) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (vectors) {
    for (std::int64_t i = 8 * lane; i < count; i += 8 * 32)
      ptx::st_cache_hint(reinterpret_cast<float*>(to + i), {0.0f, 0.0f, 0.0f, 0.0f}, policy);
  } else {
    for (std::int64_t i = lane; i < count; i += 32) to[i] = T{};
  }
}

/// All pixels of dx that are not of the result's class become zero. By `warps` warps, of which this
/// one is number `warp`; each takes whole rows.
template <class T>
__device__ void store_zeros_between(const conv2d::PatchResult<T>& dx, unsigned warp,
                                    unsigned warps) {
  const std::int64_t row_numbers = std::int64_t{dx.W} * dx.K;
  const std::uint64_t policy = ptx::createpolicy(dx.passes);
  for (std::int64_t i = warp; i < std::int64_t{dx.N} * dx.H; i += warps) {
    T* const row = dx.out + i * row_numbers;
    if (i % dx.H % dx.out_stride.h != dx.out_first.h) {
      store_zeros(row, row_numbers, dx.vectors, policy);
      continue;
    }
    // Between two pixels of the class, and before the first one.
    for (int w = dx.out_first.w - dx.out_stride.w + 1; w < dx.W; w += dx.out_stride.w) {
      const int from = max(w, 0), to = min(w + dx.out_stride.w - 1, dx.W);
      if (from < to) {
        store_zeros(row + std::int64_t{from} * dx.K, std::int64_t{to - from} * dx.K, dx.vectors,
                    policy);
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
