/// @file reference.hpp
/// @brief What every rung's result is compared with: plain definitions in double precision.
///
/// These are independent of the rungs: written once more, directly from the formulas, and each
/// along another way than the rungs of its ladder take (gradients scatter here, where rungs
/// gather).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The right values of one output, and what is needed to bound a rung's rounding error.
struct Expected {
  ArraySpec spec;  ///< With its final shape, also where the output is dynamic.
  std::vector<double>
      values;  ///< Of floating-point outputs, before they are rounded to their type.
  std::vector<double>
      magnitude;  ///< Sum of the |products| of each value; empty: no rounding at all.
  std::vector<std::int32_t> integers;     ///< int32 outputs
  std::int64_t longest_sum = 1;           ///< Products in the longest sum.
  Precision precision = Precision::fp32;  ///< Of the products, as the problem allows it.
  DType factors = DType::f32;             ///< Of what is multiplied.
  /// Of a transform by irrational numbers: the passes that an FFT of its length has, and magnitudes
  /// are the largest output of a line, or of what is transformed with it; else 0. See judge().
  int passes = 0;
  /// Roundings of a term beside those of its sum, as those of Winograd's transforms.
  std::int64_t other_roundings = 0;
  /// What a value may err by whatever its terms are: numbers near 0 are rounded to multiples of the
  /// smallest number that their type has.
  double absolute = 0;
  /// Of a transform: no number on the way to any output is larger; else 0.
  double largest = 0;
  /// Of sums by such transforms: all right values are multiples of it, see rounded_spectra(); else
  /// 0.
  double grid = 0;
};

/// Numbers of at least this size are rounded by a part of themselves, smaller ones by as much as
/// this one: float32's smallest normal number.
inline constexpr double kLeastNormal = 0x1p-126;
/// The same where the rest of a number is rounded to TF32: its last bit is 2^-136 at least, which
/// is to that as 2^-23 to 1.
inline constexpr double kLeastSplit = 0x1p-113;

/// The products in the longest sum of any output of this problem.
std::int64_t longest_sum(const std::string& ladder, const Problem& problem);

/// How many times larger than its outputs' sums a ladder's intermediate numbers may become: exact
/// data leave that much room. 1, but for convolutions that Winograd's rungs take (see
/// winograd_headroom()).
std::int64_t headroom(const std::string& ladder, const Problem& problem);

/// What make_inputs() needs to know of a problem: its longest sum, with headroom where that leaves
/// any whole numbers but 0.
std::int64_t exact_sum(const std::string& ladder, const Problem& problem);

/// One of them for a rung that multiplies spectra in float, likewise, and with their grid.
/// @param least as expected_of_winograd() has it
Expected expected_of_spectra(const std::string& ladder, const Expected& expected,
                             const Problem& problem, const Arrays& inputs,
                             double least = kLeastNormal);

/// All outputs of a problem.
std::vector<Expected> reference(const std::string& ladder, const Problem& problem,
                                const Arrays& inputs);

/// One of them for a rung that computes by such tiles of Winograd's: the same values, with what
/// bounds its rounding. @param least kLeastNormal, or kLeastSplit
/// @throws std::logic_error if the ladder knows no such bound
Expected expected_of_winograd(const std::string& ladder, const Expected& expected,
                              const Problem& problem, const Arrays& inputs, WinogradTile tile,
                              double least = kLeastNormal);

}  // namespace convladder
