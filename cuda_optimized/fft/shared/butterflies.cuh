/// @file butterflies.cuh
/// @brief Transforms of 2, 4, 8 and 16 points in registers, and a pass of them by a thread that
/// holds several.
#pragma once

#include <type_traits>

#include "core/complex.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::fft {

/// root_of_unity(1, 16) as a compile-time constant.
template <class T>
__device__ constexpr Complex<T> sixteenth() {
  if constexpr (std::is_same_v<T, Mersenne>) {
    return {{55712}, {104646}};
  } else {
    return {static_cast<T>(0.92387953251128675613), static_cast<T>(-0.38268343236508977173)};
  }
}

/// z rotated by `sixteenths` of a full turn, 0 to 7, with the fewest operations. Three sixteenths
/// are the conjugate of one, and a quarter turn.
template <class T>
__device__ Complex<T> turned(Complex<T> z, int sixteenths) {
  if (sixteenths % 4 == 1) z = z * sixteenth<T>();
  if (sixteenths % 4 == 2) z = eighth_turn(z);
  if (sixteenths % 4 == 3) z = quarter_turn(z * conjugate(sixteenth<T>()));
  return sixteenths >= 4 ? quarter_turn(z) : z;
}

/// Transforms v[0], v[kStep], ... (kRadix of them) in place, in order. Its roots of unity are
/// quarters of a turn, which exchange real and imaginary parts, and eighths, which take two
/// products with sqrt(1/2). For kRadix 16, four are other sixteenths.
template <int kRadix, int kStep, class T>
__device__ void butterfly(Complex<T>* v) {
  if constexpr (kRadix == 2) {
    const Complex<T> even = v[0], odd = v[kStep];
    v[0] = even + odd;
    v[kStep] = even - odd;
  } else {
    // Even points and odd points are transformed separately, then combined: E + w^k O and E - w^k
    // O.
    butterfly<kRadix / 2, 2 * kStep>(v);
    butterfly<kRadix / 2, 2 * kStep>(v + kStep);
    Complex<T> result[kRadix];
#pragma unroll
    for (int k = 0; k < kRadix / 2; ++k) {
      const Complex<T> even = v[2 * k * kStep];
      const Complex<T> odd = turned(v[(2 * k + 1) * kStep], k * 16 / kRadix);
      result[k] = even + odd;
      result[k + kRadix / 2] = even - odd;
    }
#pragma unroll
    for (int k = 0; k < kRadix; ++k) v[k * kStep] = result[k];
  }
}

inline constexpr int kRadix = 8;  ///< Points of a thread: those of its largest butterfly.

/// A pass of radix R over the thread's points v, which are kPoints of a line, `apart` from each
/// other from point t on: kPoints / R butterflies, each of points L / R apart.
/// @param before points of the lines that are done @param twiddles see fft_twiddles()
template <int R, class T, int kPoints>
__device__ void turn_and_transform(Complex<T> (&v)[kPoints], int t, int apart, int before,
                                   const Complex<T>* twiddles) {
  constexpr int kButterflies = kPoints / R;
#pragma unroll
  for (int b = 0; b < kButterflies; ++b) {
    const int k = (t + b * apart) & (before - 1);
#pragma unroll
    for (int r = 1; r < R; ++r) {
      v[r * kButterflies + b] = v[r * kButterflies + b] * twiddles[r * before + k];
    }
    butterfly<R, kButterflies>(v + b);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::fft
