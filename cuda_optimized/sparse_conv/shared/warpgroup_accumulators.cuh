/// @file warpgroup_accumulators.cuh
/// @brief What the rungs with wgmma share: the sums of a warpgroup, as wgmma spreads them, and the
/// factors that it takes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

constexpr int kWarpgroupRows = 64;  ///< Of a wgmma.

/// A warpgroup's sums, 64 rows and kN channels, as wgmma spreads them.
template <class T, int kN>
struct WarpgroupSums {
  float of[kN / 2] = {};               ///< This thread's.
  static constexpr int kTogether = 2;  ///< Neighbours in a row.

  /// Adds the products of 32 bytes along k; the factors are given by their descriptors.
  __device__ void add(std::uint64_t left, std::uint64_t right) {
    if constexpr (std::is_same_v<T, float>) {
      ptx::wgmma_m64k8_tf32<kN>(of, left, right, true);
    } else if constexpr (std::is_same_v<T, Half>) {
      ptx::wgmma_m64k16_f16<kN>(of, left, right, true);
    } else {
      ptx::wgmma_m64k16_bf16<kN>(of, left, right, true);
    }
  }

  /// Calls visit(row, channel, values) for each two neighbouring sums; rows count from the
  /// warp's 16.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
        const float values[2] = {of[4 * j + 2 * half], of[4 * j + 2 * half + 1]};
        visit(8 * half + lane / 4, 8 * j + lane % 4 * 2, values);
      }
    }
  }
};

/// A number as wgmma should get it: float32 rounded to TF32, as wgmma would truncate it; others as
/// they are.
template <class T>
__device__ T as_factor(T number) {
  if constexpr (std::is_same_v<T, float>) {
    return __uint_as_float(ptx::to_tf32(number));
  } else {
    return number;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
