/// @file fft_problem.hpp
/// @brief The parameters of a discrete Fourier transform.
#pragma once

#include <cstdint>
#include <string>

#include "core/arithmetic.hpp"
#include "core/types.hpp"

namespace convladder {

/// The number type of a transform.
enum class FftRing {
  complex,  ///< Complex numbers in float, whose roots of unity are rounded.
  mersenne  ///< Complex integers modulo 2^17 - 1, see Mersenne: exact.
};

/// As on the command line: "complex".
constexpr const char* name_of(FftRing ring) {
  return ring == FftRing::complex ? "complex" : "mersenne";
}

/// The sign in the exponent.
enum class FftDirection {
  forward,  ///< exp(-2 pi i j k / L)
  inverse   ///< exp(+2 pi i j k / L); not divided by L: forward followed by inverse is L times x
};

/// As on the command line: "forward".
constexpr const char* name_of(FftDirection direction) {
  return direction == FftDirection::forward ? "forward" : "inverse";
}

/// The type of the points, which a transform maps to or from their spectrum.
enum class FftInput {
  complex,  ///< Points with a real and an imaginary part.
  real  ///< Points of one number. Half of the spectrum determines the rest: the forward transform
        ///< maps points to that half, the inverse maps it to points.
};

/// As on the command line: "complex".
constexpr const char* name_of(FftInput input) {
  return input == FftInput::complex ? "complex" : "real";
}

/// The longest line over FftRing::mersenne, which has no roots of unity of higher order.
inline constexpr int kLongestMersenneLine = 1 << 17;

/// y[n,k] = sum over j of x[n,j] * w^(j k), w = exp(-2 pi i / L), for each of N lines of L numbers:
/// the discrete Fourier transform, unnormalised, as in FFTW and cuFFT. In two dimensions the same
/// for N planes of H rows: y[n,u,v] = sum over h and w of x[n,h,w] * exp(-2 pi i (h u / H + w v /
/// L)). The inverse to real points is the real part of the inverse transform of the full spectrum,
/// of which x holds the part that frequencies() counts: y[L - k] is the conjugate of y[k].
/// Trivially copyable.
struct FftProblem {
  int N = 1;                                       ///< Lines, or planes, contiguous.
  int H = 0;                                       ///< Rows of a plane; 0: lines.
  int L = 1;                                       ///< Points of a line, or of a plane's row.
  FftDirection direction = FftDirection::forward;  ///< The sign in the exponent.
  FftRing ring = FftRing::complex;                 ///< The number type.
  FftInput input = FftInput::complex;              ///< The type of the points.

  /// Whether it has two dimensions.
  HOST_DEVICE constexpr bool has_planes() const { return H > 0; }
  /// Whether the points are real: x, or y of the inverse transform.
  HOST_DEVICE constexpr bool is_real() const { return input == FftInput::real; }
  /// Lines that are transformed together: those of a plane, or 1.
  HOST_DEVICE constexpr int rows() const { return H > 0 ? H : 1; }
  /// Points of all lines or planes: elements of x; for transforms to real points, of y.
  HOST_DEVICE constexpr std::int64_t points() const { return std::int64_t{N} * rows() * L; }
  /// Frequencies of a line in an array. For a real line, y[L - k] is the conjugate of y[k], and the
  /// array ends in the middle.
  HOST_DEVICE constexpr int frequencies() const { return is_real() ? L / 2 + 1 : L; }
  /// Frequencies of all lines or planes, of two parts each.
  HOST_DEVICE constexpr std::int64_t outputs() const {
    return std::int64_t{N} * rows() * frequencies();
  }
  /// Whether L, and H, are powers of two.
  constexpr bool has_power_of_two() const {
    return (L & (L - 1)) == 0 && (rows() & (rows() - 1)) == 0;
  }
  /// Passes of an FFT: log2(L), rounded up, plus the same for H.
  constexpr int passes() const { return halvings(L) + halvings(rows()); }
  /// Whether the parts of x and y are exchanged: see exchanged_if().
  HOST_DEVICE constexpr bool exchanges() const { return direction == FftDirection::inverse; }

 private:
  /// log2(length), rounded up.
  static constexpr int halvings(int length) {
    int count = 0;
    while ((std::int64_t{1} << count) < length) ++count;
    return count;
  }
};

/// The same problem. @throws BadInput if N or H is negative, or L less than 1; over
/// FftRing::mersenne if L or H is not a power of two or exceeds kLongestMersenneLine; and if y has
/// more elements than int64 can count
FftProblem validated(FftProblem problem);

/// One line: "n 100, length 256", or "n 100, length 16 x 16" for planes, and every parameter that
/// is not the default: input, direction and ring.
std::string describe(const FftProblem& problem);

/// The arrays: x to y, of float32 in either ring.
Signature fft_signature(const FftProblem& problem);

/// The arrays at the place where a rung runs. A number is its real part, then its imaginary part.
struct FftArrays {
  using Problem = FftProblem;  ///< The problem type of these arrays.
  /// [N][L][2]; planes [N][H][L][2]; without [2] if it is real; for transforms to real points, the
  /// shape of y.
  Input x = {};
  /// [N][L][2]; planes [N][H][L][2]; with frequencies() instead of L; real points like x. Over
  /// FftRing::mersenne, integers below 2^17 - 1.
  Output y = {};
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const FftProblem& problem, const FftArrays& arrays);

}  // namespace convladder
