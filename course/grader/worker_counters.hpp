/// @file worker_counters.hpp
/// @brief A worker's numbers of its run. Only a worker with instrumented kernels has any.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/assignment.hpp"
#include "check/trial.hpp"
#include "oracle/runner.hpp"

namespace convladder::grader {

/// What was seen in one run.
struct Counted {
  std::map<std::string, double> counters;   ///< Those that were asked for (check/counters.hpp).
  std::map<std::string, double> footprint;  ///< Distinct bytes touched, by global array.
  std::vector<std::string> races;           ///< Sentences about errors.
  std::vector<std::string> unwritten;       ///< Likewise, of reads of unwritten memory.
};

/// Watches the run.
/// @param wanted names of counters, with blanks between them
Counted count(const check::Judged& judged, const check::Trial& trial, const std::string& wanted,
              const std::function<Outcome(const RunOptions&)>& run);

}  // namespace convladder::grader
