/// @file transposed_operand.cuh
/// @brief wgmma of numbers of 16 bits whose factors lie across k: rows of a stage are of one k.
#pragma once

#include <type_traits>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// `wgmma` m64nNk16 of this type, with rows of both factors across k.
template <int kN, class T>
__device__ inline void wgmma_across(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, true, true>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, true, true>(d, a, b, true);
  }
}

/// The same with rows of b along k, and only those of a across: a is column-major.
template <int kN, class T>
__device__ inline void wgmma_down_a(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, false, true>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, false, true>(d, a, b, true);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
