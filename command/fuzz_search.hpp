/// @file fuzz_search.hpp
/// @brief The search of `fuzz`, in the process that runs the rungs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "command/fuzz_failures.hpp"
#include "command/options.hpp"

namespace convladder::command {

constexpr int kSecondsARun = 60;   ///< Seconds after which a run counts as endless.
constexpr int kSecondsBeyond = 3;  ///< Seconds after the time limit at which a current run is
                                   ///< abandoned.

/// The memory that the comparing process and the waiting process share.
struct Shared {
  char running[8192];  ///< The current problem as JSON, for the report if the process does not end
                       ///< normally.
  bool given_up;       ///< SIGALRM ends this run because the time is over, which is not reported as
                       ///< a failure.
};

/// The number of failures by rung.
using FailureCounts = std::map<std::string, int>;

/// Draws problems and runs the selected rungs on them until `end`, or until the number of problems
/// in the options is reached.
/// @param seconds the time until `end`, for the progress bar
/// @throws BadInput if none of the rungs can run on this machine
void search(const Options& options, std::uint64_t seed, std::chrono::steady_clock::time_point end,
            int seconds, const FailureCounts& failures, Log& log, Shared& shared);

}  // namespace convladder::command
