/// @file half_types.cuh
/// @brief What the products in 16 bits share: their type, their instructions, and how sums are
/// stored.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Why a rung of 16-bit numbers declines a problem of others.
inline Declined why_no_halves(const GemmProblem& gemm) {
  if (gemm.dtype == DType::f16 || gemm.dtype == DType::bf16) return {};
  return text("multiplies numbers of 16 bits, and the problem asks for ",
              dtype_name(gemm.dtype, gemm.precision));
}

/// Why `mma.sync` of 16 bits is not there, if so.
inline Declined why_no_mma() { return why_not("sm_80"); }

/// Whether all rows of a and b begin at multiples of 16 bytes, if the matrices do.
inline bool rows_in_eights(const GemmProblem& gemm) { return gemm.K % 8 == 0 && gemm.N % 8 == 0; }

/// Whether both matrices begin at multiples of 16 bytes.
inline bool begin_at_16_bytes(const void* a, const void* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
}

/// `mma.sync` m16n8k16 of this type.
template <class T>
__device__ inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::mma_m16n8k16_f16(d, a, b);
  } else {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
}

/// `wgmma` m64nNk16 of this type, with a row-major b.
template <int kN, class T>
__device__ inline void wgmma_m64k16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, true>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, true>(d, a, b, true);
  }
}

/// Stores two neighbouring floats; `to` is a multiple of 8 bytes.
__device__ inline void store_two(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = {first, second};
}
/// Two numbers rounded to 16 bits, the first one in the low half.
template <class T>
__device__ inline std::uint32_t two_rounded(float first, float second) {
  return rounded_to<T>(first).bits | static_cast<std::uint32_t>(rounded_to<T>(second).bits) << 16;
}
/// Stores two neighbours rounded to 16 bits; `to` is a multiple of 4 bytes.
template <class T>
__device__ inline void store_two(T* to, float first, float second) {
  *reinterpret_cast<std::uint32_t*>(to) = two_rounded<T>(first, second);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
