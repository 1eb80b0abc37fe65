/// @file mma_number.cuh
/// @brief The three kinds of numbers that tensor cores multiply here, behind one interface.
///
/// mma.sync takes 32 bytes along k at a time, of each of them: 8 floats or 16 numbers of 16 bits.
/// A fragment's registers hold 4 bytes of the same places in all three cases, so kernels count in
/// bytes, and differ in the instruction alone. (And in how they transpose: ldmatrix moves pairs of
/// bytes, so it can transpose 16-bit numbers, but not floats.)
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// d += a * b for a [16][kSteps], b [kSteps][8]; floats are rounded to TF32 before.
template <class T>
struct MmaNumber;

/// Floats; mma.sync takes 10 bits of their fraction.
template <>
struct MmaNumber<float> {
  static constexpr int kSteps = 8;  ///< along k, of an instruction
  /// Rounds to nearest; mma.sync by itself would truncate.
  template <int kCount>
  __device__ static void round(std::uint32_t (&fragment)[kCount]) {
#pragma unroll
    for (int e = 0; e < kCount; ++e) fragment[e] = ptx::to_tf32(__uint_as_float(fragment[e]));
  }
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k8_tf32(d, a, b);
  }
};

/// float16.
template <>
struct MmaNumber<Half> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
  }
};

/// bfloat16.
template <>
struct MmaNumber<BFloat16> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
};

/// Copies 16 bytes of a row to shared memory, of which the first `count` numbers exist; zeros for
/// the others.
/// @tparam kAligned all of them exist, or none, and `from` is a multiple of 16 bytes: then the copy
/// is asynchronous. Otherwise it is there at once, and passes through registers.
template <class T, bool kAligned>
__device__ inline void copy_piece(T* to, const T* from, int count) {
  if constexpr (kAligned) {
    ptx::cp_async<16>(to, from, count > 0 ? 16 : 0);
  } else {
    constexpr int kNumbers = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) to[i] = i < count ? from[i] : T{};
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
