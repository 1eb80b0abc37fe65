/// @file non_finite.hpp
/// @brief Where NaN and infinity of an input may arrive, beside where the definition has them:
/// docs/oracle.md says what is promised.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// By what a number that is not finite reaches outputs that do not have it among their terms.
enum class Reach : unsigned char {
  zeros,   ///< A zero stands for another input there, in the padding or where a tap meets nothing.
  groups,  ///< A tile of the rung spans several groups.
  tiles    ///< All outputs of a tile, or of an image, are computed from the same numbers.
};

/// Which elements of one output may be other than the definition has them, as an input is not
/// finite.
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
  /// Element i may be any number: what is not finite is a part of it 0 times.
  void let_be_free(std::size_t i) { kinds_[i] = Kind::free; }
  /// NaN may stand for every infinity.
  void let_infinity_be_nan() { nan_for_infinity_ = true; }
  /// Elements 2 i and 2 i + 1 are a point, of which one may be finite where both should not.
  void take_points() { points_ = true; }
  /// ReLU makes 0 of a negative infinity, which may stand for any number that is not finite.
  void let_be_clamped() { clamped_ = true; }

  /// Whether it may be that number. @param right what the definition has @param all the output
  bool allows(std::size_t i, double right, double found, std::span<const float> all) const;
  /// The same without a look at the rung's other promises: whether NaN, or any, may stand there.
  bool reaches(std::size_t i) const { return !kinds_.empty() && kinds_[i] != Kind::none; }

 private:
  enum class Kind : unsigned char { none, nan, any, free };
  std::vector<Kind> kinds_;  // empty: none
  bool nan_for_infinity_ = false, points_ = false, clamped_ = false;
};

/// Adds the elements of the output `out` that the numbers of an input which are not finite may
/// reach by that. @param input its name @param array its elements
void add_reach(Spread& spread, Reach reach, const std::string& ladder, const Rung& rung,
               const Problem& problem, const std::string& input, const Array& array,
               const ArraySpec& out);

/// Of a rung, by what tests/non_finite.json records of it; empty if all inputs are finite.
Spread spread_of(const std::string& ladder, const Rung& rung, const Problem& problem,
                 const Arrays& inputs, const ArraySpec& out);

/// A row of tests/non_finite.json, as it is compiled in here: the rung lets numbers of that input
/// which are not finite reach more outputs than the definition does, by that kind.
struct RecordedReach {
  std::string_view kind, input, rung;  ///< "zeros", "weights", "cuda_optimized/conv2d/..."
};

/// All of them.
std::span<const RecordedReach> recorded_reach();

/// Whether all its elements are finite; true of integers.
bool all_finite(const Array& array);

}  // namespace convladder
