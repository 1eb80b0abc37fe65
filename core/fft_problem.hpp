/// @file fft_problem.hpp
/// @brief The parameters of a discrete Fourier transform.
#pragma once

#include <cstdint>
#include <string>

#include "core/arithmetic.hpp"
#include "core/types.hpp"

namespace convladder {

/// Which numbers a transform computes with.
enum class FftRing {
  complex,  ///< Complex numbers in float, whose roots of unity are rounded.
  mersenne  ///< The same with whole numbers modulo 2^17 - 1, see Mersenne: nothing is rounded.
};

/// As on the command line: "complex".
constexpr const char* name_of(FftRing ring) {
  return ring == FftRing::complex ? "complex" : "mersenne";
}

/// The sign in the exponent.
enum class FftDirection {
  forward,  ///< exp(-2 pi i j k / L)
  inverse   ///< exp(+2 pi i j k / L); not divided by L: forward, then inverse, is L times x
};

/// As on the command line: "forward".
constexpr const char* name_of(FftDirection direction) {
  return direction == FftDirection::forward ? "forward" : "inverse";
}

/// The longest line over FftRing::mersenne: more roots of unity its numbers do not have.
inline constexpr int kLongestMersenneLine = 1 << 17;

/// y[n,k] = sum over j of x[n,j] * w^(j k), w = exp(-2 pi i / L), for each of N lines of L complex
/// numbers: the discrete Fourier transform, unnormalised, as FFTW and cuFFT have it. Trivially
/// copyable.
struct FftProblem {
  int N = 1;                                       ///< Lines, one behind the other.
  int L = 1;                                       ///< Points of a line.
  FftDirection direction = FftDirection::forward;  ///< The sign in the exponent.
  FftRing ring = FftRing::complex;                 ///< What the numbers are.

  /// Of all lines.
  HOST_DEVICE constexpr std::int64_t points() const { return std::int64_t{N} * L; }
  /// Whether L halves down to 1.
  constexpr bool has_power_of_two() const { return (L & (L - 1)) == 0; }
  /// Of an FFT: log2(L), rounded up.
  constexpr int passes() const {
    int count = 0;
    while ((std::int64_t{1} << count) < L) ++count;
    return count;
  }
  /// Whether the parts of x and y change places: see exchanged_if().
  HOST_DEVICE constexpr bool exchanges() const { return direction == FftDirection::inverse; }
};

/// The same problem. @throws BadInput if N is negative or L less than 1; and over FftRing::mersenne
/// if L is no power of two or more than kLongestMersenneLine
FftProblem validated(FftProblem problem);

/// One line: "n 100, length 256", and direction and ring unless they are forward and complex.
std::string describe(const FftProblem& problem);

/// The arrays: x to y, of float32 in either ring.
Signature fft_signature(const FftProblem& problem);

/// The arrays where a rung computes. A number is its real part, then its imaginary part.
struct FftArrays {
  using Problem = FftProblem;  ///< Whose arrays these are.
  Input x;                     ///< [N][L][2]
  Output y;                    ///< [N][L][2]; over FftRing::mersenne whole numbers below 2^17 - 1.
};

}  // namespace convladder
