/// @file judge.hpp
/// @brief Compares one output with its expected values.
#pragma once

#include <optional>
#include <string>

#include "oracle/data.hpp"
#include "oracle/non_finite.hpp"
#include "oracle/reference.hpp"

namespace convladder {

/// Element i of an array, for messages: "y[n=0, k=2, p=15, q=31]".
std::string element_name(const ArraySpec& spec, std::int64_t i);

/// The assumption about the rounding errors of a sum.
enum class Roundings {
  independent,  ///< Like those of random numbers: most of them cancel.
  any           ///< They may all have the same sign, like those of equal numbers.
};

/// The outcome of a comparison.
struct Verdict {
  bool agrees = false;          ///< Every element is within the tolerance.
  bool adds_up = false;         ///< Some element is within the bound of Roundings::any only.
  bool exact = false;           ///< Every element equals the reference rounded to its type.
  double max_error = 0;         ///< Largest |found - expected|; infinity if NaN was found.
  std::string difference = {};  ///< The first wrong element, with expected and found values.
};

/// The rounding error that is allowed in Data::real and Data::positive, relative to an element's
/// sum of |products|: see judge().
double allowed_error(const Expected& expected, Data data);

/// The same without any cancellation: one unit per term of the sum. For FP8, a unit of 2^-13 for
/// each of the 128 products that tensor cores accumulate, and for the partial sums. An output of a
/// transform depends on all of its points, whose errors accumulate in each pass.
double most_error(const Expected& expected);

/// The most by which rounding to a 16-bit output changes a number of that size; 0 for other types,
/// whose rounding is included in allowed_error().
double error_of_rounding(double size, DType dtype);

/// Compares `found` with `expected`.
///
/// Data::integer: every element must equal the reference, rounded once to the output's type.
/// Otherwise every element must be within (4 + 2 sqrt(L)) 2^-24 * (sum of |products|), L =
/// Expected::longest_sum: a bound on float rounding in any order of summation that random data
/// satisfy with a wide margin (Higham and Mary, "A new approach to probabilistic rounding error
/// analysis", 2019); plus L 2^-149 for underflow. The bound is per element, without a norm over all
/// elements, so that one wrong pixel is detected.
///
/// Precision::tf32 allows 2^-10 of the sum of |products| more, because rounding changes each
/// operand by at most 2^-11 of itself, and L 2^-24 instead of the statistical bound, because tensor
/// cores may truncate when they add; the latter also holds for 16-bit operands, whose products are
/// exact. A 16-bit output may have an additional error of half a unit in its last place.
/// Data::positive distinguishes rounding from truncation: rounding errors of products in [0, 1)
/// average out, to within 2^-9 / sqrt(L), whereas truncation has an error of 6.5e-4 for every L.
///
/// FP8 operands allow 2^-9 of the sum of |products|: see judge.cpp.
///
/// A discrete Fourier transform sums its points in passes (Expected::passes). An intermediate value
/// for output k is a mean of rotated outputs, so none is larger than the line's largest output, and
/// the sum of the squares of all those of a pass that k depends on is not larger than its square.
/// Rounding errors of independent signs then accumulate to sqrt(passes) 2^-24 times a small
/// constant of it: the allowed error of an output is (4 + 2 passes) 2^-24 * (the line's largest
/// output).
///
/// A convolution by such transforms in float may have an error of as many units of the norms of
/// with_fourier_bound(). Data::integer: its outputs come from rounded_spectra(); if that could not
/// round them, the bound decides.
///
/// A non-finite element must be the value of the definition: NaN, or that infinity.
///
/// @param tile the tile that a block computes, for the message; rows = 0 for none.
/// @param roundings Roundings::any: errors that independent roundings do not explain may be within
/// most_error()
/// @param spread where other non-finite values are permitted; empty: nowhere
Verdict judge(const Expected& expected, const Array& found, Data data, const Problem& problem,
              OutputTile tile, Roundings roundings = Roundings::independent,
              const Spread& spread = {});

/// Rounds the outputs of a rung that multiplies spectra in float (Expected::grid), on exact data.
/// The right values are multiples of `expected.grid`: if the bound on their error is below half of
/// it, the nearest multiple is the right value and replaces the output. Other outputs are
/// unchanged.
Array rounded_spectra(const Expected& expected, const Array& found);

}  // namespace convladder
