/// @file reference.hpp
/// @brief The references for all rungs: plain definitions in double precision.
///
/// They are independent of the rungs: written separately, directly from the formulas, and with
/// another algorithm than the rungs of the ladder (gradients scatter here, whereas rungs gather).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The right values of one output, and the data for bounding a rung's rounding error.
struct Expected {
  ArraySpec spec;              ///< With its final shape, also if the output is dynamic.
  std::vector<double> values;  ///< Floating-point outputs, before they are rounded to their type.
  std::vector<double> magnitude;       ///< Sum of the |products| of each value; empty: no rounding.
  std::vector<std::int32_t> integers;  ///< int32 outputs
  std::int64_t longest_sum = 1;        ///< Products in the longest sum.
  Precision precision = Precision::fp32;  ///< Precision of the products, as permitted by the
                                          ///< problem.
  DType factors = DType::f32;             ///< Type of the operands.
  /// For a transform by irrational numbers: the number of passes of an FFT of its length;
  /// magnitudes are then the largest output of a line, or of the lines that are transformed
  /// together; otherwise 0. See judge().
  int passes = 0;
  /// Roundings of a term in addition to those of its sum, like those of Winograd's transforms.
  std::int64_t other_roundings = 0;
  /// An absolute error that is allowed for all terms: numbers near 0 are rounded to multiples of
  /// the type's smallest number.
  double absolute = 0;
  /// For a transform: an upper bound of all intermediate values; otherwise 0.
  double largest = 0;
  /// For sums by such transforms: all right values are multiples of it, see rounded_spectra();
  /// otherwise 0.
  double grid = 0;
};

/// Numbers of at least this size have a relative rounding error, smaller ones the absolute error of
/// this one: float32's smallest normal number.
inline constexpr double kLeastNormal = 0x1p-126;
/// The same if the remainder of a number is rounded to TF32: its last bit is at least 2^-136, which
/// relates to this value like 2^-23 to 1.
inline constexpr double kLeastSplit = 0x1p-113;

/// The products in the longest sum of any output of this problem.
std::int64_t longest_sum(const std::string& ladder, const Problem& problem);

/// The factor by which a ladder's intermediate values may exceed its outputs' sums: exact data
/// leave that much room. 1, except for convolutions that Winograd rungs support (see
/// winograd_headroom()).
std::int64_t headroom(const std::string& ladder, const Problem& problem);

/// The longest sum that make_inputs() must consider: that of the problem, times the headroom if
/// that leaves any integers except 0.
std::int64_t exact_sum(const std::string& ladder, const Problem& problem);

/// One of them for a rung that multiplies spectra in float, with their grid.
/// @param least as for expected_of_winograd()
Expected expected_of_spectra(const std::string& ladder, const Expected& expected,
                             const Problem& problem, const Arrays& inputs,
                             double least = kLeastNormal);

/// All outputs of a problem.
std::vector<Expected> reference(const std::string& ladder, const Problem& problem,
                                const Arrays& inputs);

/// One of them for a rung that uses such Winograd tiles: the same values, with the bound of its
/// rounding. @param least kLeastNormal, or kLeastSplit
/// @throws std::logic_error if the ladder has no such bound
Expected expected_of_winograd(const std::string& ladder, const Expected& expected,
                              const Problem& problem, const Arrays& inputs, WinogradTile tile,
                              double least = kLeastNormal);

}  // namespace convladder
