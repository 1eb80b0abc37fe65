/// @file butterflies.cuh
/// @brief Transforms of 2, 4 and 8 points in registers.
#pragma once

#include "core/complex.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::fft {

/// Transforms v[0], v[kStep], ... (kRadix of them) in place, in order. Its roots of unity are
/// quarters and eighths of a turn: exchanges of parts, and for kRadix 8 two products with
/// sqrt(1/2) a root.
template <int kRadix, int kStep, class T>
__device__ void butterfly(Complex<T>* v) {
  if constexpr (kRadix == 2) {
    const Complex<T> even = v[0], odd = v[kStep];
    v[0] = even + odd;
    v[kStep] = even - odd;
  } else {
    // Even points and odd points by themselves, then as everywhere: E + w^k O and E - w^k O.
    butterfly<kRadix / 2, 2 * kStep>(v);
    butterfly<kRadix / 2, 2 * kStep>(v + kStep);
    Complex<T> result[kRadix];
#pragma unroll
    for (int k = 0; k < kRadix / 2; ++k) {
      const Complex<T> even = v[2 * k * kStep];
      Complex<T> odd = v[(2 * k + 1) * kStep];
      if (k * 8 / kRadix % 2 != 0) odd = eighth_turn(odd);
      if (k * 4 / kRadix % 2 != 0) odd = quarter_turn(odd);
      result[k] = even + odd;
      result[k + kRadix / 2] = even - odd;
    }
#pragma unroll
    for (int k = 0; k < kRadix; ++k) v[k * kStep] = result[k];
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::fft
