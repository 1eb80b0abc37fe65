/// @file run.hpp
/// @brief Runs rungs on trials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/assignment.hpp"
#include "check/trial.hpp"
#include "oracle/runner.hpp"

namespace convladder::check {

inline constexpr std::uint64_t kSeed = 1;  ///< Of the data, the same in every run.

/// How a case ended.
enum class Ending { agrees, differs, declined, not_written };

/// "agrees", ..., "not written".
const char* name_of(Ending ending);

/// A case that was run.
struct Result {
  Ending ending = Ending::agrees;
  std::string says = {};  ///< Of what does not agree: what is wrong, in words.
};

/// Where this rung runs: the CPU, or the CPU in the place of a GPU.
Where place_of(const Rung& rung);

/// Runs the rung on integers, for which every order of summation gives the same bits: with the
/// threads forward, in reverse and shuffled, until one run does not agree.
Result try_out(const Judged& judged, const Trial& trial);

/// One run with the threads forward. (try_out() and the microscope share it.)
Outcome run_once(const Judged& judged, const Trial& trial, RunOptions options = {});

}  // namespace convladder::check
