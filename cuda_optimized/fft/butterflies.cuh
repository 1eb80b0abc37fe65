/// @file butterflies.cuh
/// @brief Transforms of 2, 4 and 8 points in registers, and a pass of them by a thread that holds
/// eight.
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

inline constexpr int kRadix = 8;  ///< Points of a thread: those of its largest butterfly.

/// A pass of radix R over the thread's points v, of a line of 8 * eighth, which lie `eighth` apart
/// from point t on: 8 / R butterflies, each of points L / R apart.
/// @param before points of the lines that are done @param twiddles see fft_twiddles()
template <int R, class T>
__device__ void turn_and_transform(Complex<T> (&v)[kRadix], int t, int eighth, int before,
                                   const Complex<T>* twiddles) {
  constexpr int kButterflies = kRadix / R;
#pragma unroll
  for (int b = 0; b < kButterflies; ++b) {
    const int k = (t + b * eighth) & (before - 1);
#pragma unroll
    for (int r = 1; r < R; ++r) {
      v[r * kButterflies + b] = v[r * kButterflies + b] * twiddles[r * before + k];
    }
    butterfly<R, kButterflies>(v + b);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::fft
