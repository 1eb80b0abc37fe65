/// @file judge.hpp
/// @brief Compares one output with its expected values.
#pragma once

#include <optional>
#include <string>

#include "oracle/data.hpp"
#include "oracle/reference.hpp"

namespace convladder {

/// Element i of an array, for messages: "y[n=0, k=2, p=15, q=31]".
std::string element_name(const ArraySpec& spec, std::int64_t i);

/// The outcome of a comparison.
struct Verdict {
  bool agrees = false;          ///< Every element is as expected, within the tolerance.
  bool exact = false;           ///< Every element equals the reference rounded to its type.
  double max_error = 0;         ///< Largest |found - expected|; infinity where NaN was found.
  std::string difference = {};  ///< Where it differs: the first wrong element, expected and found.
};

/// The error that rounding may make in Data::real and Data::positive, as a part of an element's sum
/// of |products|: see judge().
double allowed_error(const Expected& expected, Data data);

/// The most that rounding to an output of 16 bits may change a number of that size; 0 for others,
/// whose rounding is in allowed_error().
double error_of_rounding(double size, DType dtype);

/// Judges `found` against `expected`.
///
/// Data::integer: every element must equal the reference, rounded once to the output's type.
/// Otherwise every element must lie within (4 + 2 sqrt(L)) 2^-24 * (sum of |products|), L =
/// Expected::longest_sum: a bound on float rounding in any order of summation that random data meet
/// with a wide margin (Higham and Mary, "A new approach to probabilistic rounding error analysis",
/// 2019); and L 2^-149 for underflow. No norm over all elements takes part, so that one wrong pixel
/// cannot hide.
///
/// Precision::tf32 allows 2^-10 of the sum of |products| more, as rounding moves each factor by at
/// most 2^-11 of itself, and L 2^-24 instead of the statistical bound, as tensor cores may truncate
/// when they add; this last holds for factors of 16 bits, too, whose products are exact. An output
/// of 16 bits may err by half a unit in its last place more. Data::positive tells rounding from
/// truncation: rounding errors of products in [0, 1) average out, to within 2^-9 / sqrt(L), where
/// truncation is off by 6.5e-4 for every L.
///
/// Factors of 8 bits allow 2^-9 of the sum of |products|: see judge.cpp.
///
/// A discrete Fourier transform adds up its points in passes (Expected::passes). A number on the
/// way to output k is a mean of outputs, turned; so none is larger than the line's largest output,
/// and the squares of all those of a pass that k depends on are, together, not larger than its
/// square. Rounding errors of independent signs then add up to sqrt(passes) 2^-24 times a small
/// constant of it: an output may err by (4 + 2 passes) 2^-24 * (the line's largest output).
///
/// A convolution by such transforms in float may err by as many units of the norms of
/// with_fourier_bound(). Data::integer: its outputs come through rounded_spectra(); where that
/// could not round them, the bound decides.
///
/// @param tile the tile that a block computes, for the message; rows = 0 for none.
Verdict judge(const Expected& expected, const Array& found, Data data, const Problem& problem,
              OutputTile tile);

/// Outputs of a rung that multiplies spectra in float (Expected::grid), on exact data. The right
/// ones are multiples of `expected.grid`: where the bound on their error is below half of it, the
/// nearest multiple is the right number, and stands in the result. Others are as they were.
Array rounded_spectra(const Expected& expected, const Array& found);

}  // namespace convladder
