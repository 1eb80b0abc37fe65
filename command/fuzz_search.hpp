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

constexpr int kSecondsARun = 60;   ///< A rung that runs longer than that does not end.
constexpr int kSecondsBeyond = 3;  ///< A run that is under way at the end is given up after these.

/// What the process that compares and the one that waits for it both see.
struct Shared {
  char
      running[8192];  ///< Which problem runs, as JSON: what a process leaves that did not end well.
  bool given_up;      ///< SIGALRM ends this run for the sake of the time, and tells nothing of it.
};

/// How many failures each rung had, by its name.
using FailureCounts = std::map<std::string, int>;

/// Draws problems and runs the chosen rungs on them until `end`, or as many as the options say.
/// @param seconds until then, for the progress bar
/// @throws BadInput if none of the rungs runs here
void search(const Options& options, std::uint64_t seed, std::chrono::steady_clock::time_point end,
            int seconds, const FailureCounts& failures, Log& log, Shared& shared);

}  // namespace convladder::command
