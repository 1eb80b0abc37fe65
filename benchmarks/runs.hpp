/// @file runs.hpp
/// @brief Times rungs on the benchmark problems, and keeps what earlier runs have timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/problems.hpp"
#include "benchmarks/results.hpp"
#include "core/rung.hpp"

namespace convladder::benchmarks {

/// A problem and the rungs that are to be timed on it.
struct Plan {
  const BenchmarkProblem* problem = nullptr;
  std::vector<const Rung*> rungs;
};

/// Who is told about a run while it goes on.
struct Watcher {
  std::function<void(const Plan&)> begin;              ///< This problem is next.
  std::function<void(const std::vector<Row>&)> timed;  ///< New rows, of one dtype and layout.
  std::function<void(const std::string&)> note;        ///< What was left out, and why.
  std::function<void(const std::string&)> differs;     ///< A rung with a wrong result.
  std::function<void(const Run&)> save;                ///< The run has new rows.
};

/// The run's machine and day, without rows.
Run new_run();

/// Whether rows of `earlier` can stand beside those that this machine would add now: the same GPU,
/// driver, toolkit and cuDNN. Empty, or what differs.
std::string why_not_resumed(const Run& earlier, const Run& now);

/// The row of that rung, problem, dtype, layout and L2 state with the hash of the rung as it is
/// now; null if there is none.
const Row* row_of(const Run& run, const std::string& ladder, const std::string& rung,
                  const std::string& problem, const std::string& dtype, const std::string& layout,
                  const std::string& l2);

/// What the names of times begin with that another program measures (tools/benchmark_spconv.py).
inline constexpr const char* kMeasuredBeside = "spconv";

/// Replaces the rows of the same rung, problem, dtype, layout and L2 state, but for the times that
/// another program has measured. Sorts all rows by the order of the rung table and the table of
/// problems.
void merge(Run& run, std::vector<Row> rows);

/// Times all that has no row yet. There must be a GPU.
/// @returns true if every result was right
bool measure(Run& run, const std::vector<Plan>& plans, const Watcher& watcher);

}  // namespace convladder::benchmarks
