/// @file runner.hpp
/// @brief Runs a rung on guarded, poisoned memory and compares its outputs with the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/rung.hpp"
#include "oracle/data.hpp"
#include "oracle/guarded_run.hpp"
#include "oracle/judge.hpp"
#include "oracle/reference.hpp"

namespace convladder {

/// The result of a rung on one problem at one place.
enum class Status {
  agrees,
  differs,   ///< A wrong value, a write outside of the outputs, or a failed call: see `reason`.
  declined,  ///< The rung does not support this problem, or not at this place: see `reason`.
  skipped,   ///< This place is not available (no GPU): see `reason`.
};

/// The name in tables and JSON: "agrees".
constexpr const char* name_of(Status status) {
  switch (status) {
    case Status::agrees: return "agrees";
    case Status::differs: return "differs";
    case Status::declined: return "declined";
    case Status::skipped: return "skipped";
  }
  return "";
}

/// One row of a comparison.
struct Outcome {
  Status status = Status::skipped;  ///< The status.
  std::string reason = {};          ///< The reason why it is not Status::agrees.
  bool ran = false;                 ///< exact, max_error, milliseconds and outputs are valid
  bool exact = false;               ///< Every output has the reference's very bits.
  double max_error = 0;             ///< The largest error of any output; infinity if NaN was found.
  std::string remark = {};          ///< A restriction of an agreement, or empty.
  const char* relative_to = "";     ///< The reference value of the errors, if it is not the
                                    ///< output's terms.
  double milliseconds = 0;          ///< The time of the rung itself, host clock, without copies.
  Arrays outputs = {};              ///< By name, as written by the rung.
};

/// A problem with its data and reference result, with which any number of rungs are compared.
class Comparison {
 public:
  /// Generates data by `data` and `seed`, except for the arrays that are `given`.
  Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
             Arrays given = {});
  /// Takes the caller's arrays, which must match the problem's signature.
  /// @param roundings Roundings::any for data that are not random: an error that independent
  /// roundings do not explain is only remarked on if most_error() explains it
  Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs,
             Roundings roundings = Roundings::independent);

  /// Runs one rung there with run_guarded(), and compares its outputs. A rung declines if its
  /// workspace or other allocations do not fit beside the arrays, or if its transform might exceed
  /// the range of float.
  /// @throws BadInput if the problem does not fit into the memory there.
  Outcome run(const Rung& rung, Where where, const RunOptions& options = {}) const;

  const Ladder& ladder() const { return *ladder_; }    ///< As given.
  const Problem& problem() const { return problem_; }  ///< As given.
  const Arrays& inputs() const { return inputs_; }     ///< Generated or given.
  /// The reference result, one element per output.
  const std::vector<Expected>& expected() const { return expected_; }

 private:
  const Ladder* ladder_;
  Problem problem_;
  Data data_;
  Roundings roundings_ = Roundings::independent;
  Arrays inputs_;
  std::vector<Expected> expected_;
};

/// Sums beyond the range of float would differ in every rung.
/// @throws BadInput if a sum may be that large although all inputs are finite
void require_float_range(const Comparison& comparison);

}  // namespace convladder
