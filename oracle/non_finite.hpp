/// @file non_finite.hpp
/// @brief Which outputs NaN and infinity of an input may reach in addition to those of the
/// definition: docs/oracle.md describes the rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The mechanism by which a non-finite number reaches outputs that do not have it among their
/// terms.
enum class Reach : unsigned char {
  zeros,   ///< It is multiplied by a zero, in the padding or for a missing tap.
  groups,  ///< A tile of the rung spans several groups.
  tiles    ///< All outputs of a tile, or of an image, are computed from the same intermediate
           ///< values.
};

/// The elements of one output that may differ from the definition because an input is not finite.
class Spread {
 public:
  /// No element.
  Spread() = default;
  /// @param elements of the output
  explicit Spread(std::size_t elements) : kinds_(elements) {}

  /// Element i may be NaN.
  void let_be_nan(std::size_t i) { kinds_[i] = kinds_[i] == Kind::none ? Kind::nan : kinds_[i]; }
  /// Element i may be NaN, or infinity of either sign.
  void let_be_any(std::size_t i) { kinds_[i] = Kind::any; }
  /// Element i may be any number: a non-finite value times 0 is one of its terms.
  void let_be_free(std::size_t i) { kinds_[i] = Kind::free; }
  /// NaN may replace every infinity.
  void let_infinity_be_nan() { nan_for_infinity_ = true; }
  /// Elements 2 i and 2 i + 1 form a point, one part of which may be finite where both should not
  /// be.
  void take_points() { points_ = true; }
  /// ReLU turns negative infinity into 0, which may replace any non-finite number.
  void let_be_clamped() { clamped_ = true; }

  /// Whether an element may be that number. @param right the value of the definition @param all the
  /// output
  bool allows(std::size_t i, double right, double found, std::span<const float> all) const;
  /// The same without the rung's other permissions: whether NaN, or any number, is permitted.
  bool reaches(std::size_t i) const { return !kinds_.empty() && kinds_[i] != Kind::none; }

 private:
  enum class Kind : unsigned char { none, nan, any, free };
  std::vector<Kind> kinds_;  // empty: none
  bool nan_for_infinity_ = false, points_ = false, clamped_ = false;
};

/// Adds the elements of the output `out` that non-finite numbers of an input may reach by that
/// mechanism. @param input its name @param array its elements
void add_reach(Spread& spread, Reach reach, const std::string& ladder, const Rung& rung,
               const Problem& problem, const std::string& input, const Array& array,
               const ArraySpec& out);

/// For a rung, from its entry in tests/non_finite.json; empty if all inputs are finite.
Spread spread_of(const std::string& ladder, const Rung& rung, const Problem& problem,
                 const Arrays& inputs, const ArraySpec& out);

/// A row of tests/non_finite.json, compiled into the program: non-finite numbers of that input
/// reach more outputs in the rung than in the definition, by that mechanism.
struct RecordedReach {
  std::string_view kind, input, rung;  ///< "zeros", "weights", "cuda_optimized/conv2d/..."
};

/// All of them.
std::span<const RecordedReach> recorded_reach();

/// Whether all its elements are finite; true for integers.
bool all_finite(const Array& array);

}  // namespace convladder
