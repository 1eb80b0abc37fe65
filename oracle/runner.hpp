/// @file runner.hpp
/// @brief Runs a rung on guarded, poisoned memory and has its outputs judged.
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

/// What became of a rung on one problem in one place.
enum class Status {
  agrees,
  differs,   ///< A wrong value, a write outside of the outputs, a failed call: `reason` says which.
  declined,  ///< The rung does not take this problem, or not there: `reason` says why.
  skipped,   ///< This place is not there (no GPU): `reason` says why.
};

/// As in tables and JSON: "agrees".
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
  Status status = Status::skipped;  ///< What became of it.
  std::string reason = {};          ///< Why it is not Status::agrees.
  bool ran = false;                 ///< exact, max_error, milliseconds and outputs mean something
  bool exact = false;               ///< Every output has the reference's very bits.
  double max_error = 0;             ///< The largest of any output; infinity where NaN was found.
  std::string remark = {};          ///< What makes an agreement less than it could be, or empty.
  const char* relative_to = "";     ///< What errors are a part of, if not of the output's terms.
  double milliseconds = 0;          ///< The rung's own run, host clock, without copies.
  Arrays outputs = {};              ///< By name, as the rung left them.
};

/// A problem with its data and the right answer, to compare any number of rungs on.
class Comparison {
 public:
  /// Makes data by `data` and `seed`, but for the arrays that are `given`.
  Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
             Arrays given = {});
  /// Takes the caller's arrays, which must fit the problem's signature.
  /// @param roundings Roundings::any for data that are not random: an error which no independent
  /// roundings explain is then remarked on, and no more, if most_error() explains it
  Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs,
             Roundings roundings = Roundings::independent);

  /// Runs one rung there with run_guarded(), and judges it. A rung whose workspace, or whatever
  /// else it allocates, does not fit beside the arrays declines; so does one that computes by a
  /// transform whose numbers might leave float's range.
  /// @throws BadInput if the problem does not fit into the memory there.
  Outcome run(const Rung& rung, Where where, const RunOptions& options = {}) const;

  const Ladder& ladder() const { return *ladder_; }    ///< As given.
  const Problem& problem() const { return problem_; }  ///< As given.
  const Arrays& inputs() const { return inputs_; }     ///< As made, or as given.
  /// The right answer, an element for each output.
  const std::vector<Expected>& expected() const { return expected_; }

 private:
  const Ladder* ladder_;
  Problem problem_;
  Data data_;
  Roundings roundings_ = Roundings::independent;
  Arrays inputs_;
  std::vector<Expected> expected_;
};

/// Sums beyond float's range would differ in every rung.
/// @throws BadInput if one of the comparison's may be, of numbers that are all finite
void require_float_range(const Comparison& comparison);

}  // namespace convladder
