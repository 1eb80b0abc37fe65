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

/// What the points are, between which and their frequencies a transform leads.
enum class FftInput {
  complex,  ///< Points with a real and an imaginary part.
  real  ///< Points of one number. Half of the frequencies tell the others: the forward transform
        ///< leads from points to those, the inverse from those back to points.
};

/// As on the command line: "complex".
constexpr const char* name_of(FftInput input) {
  return input == FftInput::complex ? "complex" : "real";
}

/// The longest line over FftRing::mersenne: more roots of unity its numbers do not have.
inline constexpr int kLongestMersenneLine = 1 << 17;

/// y[n,k] = sum over j of x[n,j] * w^(j k), w = exp(-2 pi i / L), for each of N lines of L numbers:
/// the discrete Fourier transform, unnormalised, as FFTW and cuFFT have it. In two dimensions the
/// same of N planes of H rows: y[n,u,v] = sum over h and w of x[n,h,w] * exp(-2 pi i (h u / H +
/// w v / L)). The inverse to real points is the real part of what all frequencies give, of which x
/// holds those that frequencies() counts: y[L - k] is the conjugate of y[k]. Trivially copyable.
struct FftProblem {
  int N = 1;                                       ///< Lines, or planes, one behind the other.
  int H = 0;                                       ///< Rows of a plane; 0: there are lines alone.
  int L = 1;                                       ///< Points of a line, or of a plane's row.
  FftDirection direction = FftDirection::forward;  ///< The sign in the exponent.
  FftRing ring = FftRing::complex;                 ///< What the numbers are.
  FftInput input = FftInput::complex;              ///< What the points are.

  /// Whether it has two dimensions.
  HOST_DEVICE constexpr bool has_planes() const { return H > 0; }
  /// Whether the points are real: x, or of the inverse transform y.
  HOST_DEVICE constexpr bool is_real() const { return input == FftInput::real; }
  /// Lines that are transformed together: those of a plane, or 1.
  HOST_DEVICE constexpr int rows() const { return H > 0 ? H : 1; }
  /// Of all lines, or planes: elements of x, but of those to real points, of y.
  HOST_DEVICE constexpr std::int64_t points() const { return std::int64_t{N} * rows() * L; }
  /// Frequencies of a line that an array holds. Of a real one, y[L - k] is the conjugate of y[k]:
  /// it stops in the middle.
  HOST_DEVICE constexpr int frequencies() const { return is_real() ? L / 2 + 1 : L; }
  /// Of all lines, or planes: frequencies of two parts each.
  HOST_DEVICE constexpr std::int64_t outputs() const {
    return std::int64_t{N} * rows() * frequencies();
  }
  /// Whether L, and H, halve down to 1.
  constexpr bool has_power_of_two() const {
    return (L & (L - 1)) == 0 && (rows() & (rows() - 1)) == 0;
  }
  /// Of an FFT: log2(L), rounded up, and as much for H.
  constexpr int passes() const { return halvings(L) + halvings(rows()); }
  /// Whether the parts of x and y change places: see exchanged_if().
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
/// FftRing::mersenne if L or H is no power of two or more than kLongestMersenneLine; and if y has
/// more numbers than int64 counts
FftProblem validated(FftProblem problem);

/// One line: "n 100, length 256", or "n 100, length 16 x 16" of planes, and what else is not the
/// default: input, direction and ring.
std::string describe(const FftProblem& problem);

/// The arrays: x to y, of float32 in either ring.
Signature fft_signature(const FftProblem& problem);

/// The arrays where a rung computes. A number is its real part, then its imaginary part.
struct FftArrays {
  using Problem = FftProblem;  ///< Whose arrays these are.
  /// [N][L][2], of planes [N][H][L][2]; without [2] if it is real; to real points, as y of those.
  Input x = {};
  /// [N][L][2], of planes [N][H][L][2]; with frequencies() for L; real points as x of those. Over
  /// FftRing::mersenne whole numbers below 2^17 - 1.
  Output y = {};
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const FftProblem& problem, const FftArrays& arrays);

}  // namespace convladder
