/// @file report.hpp
/// @brief Runs the chosen rungs on a problem; what came out, as data and as JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command/selection.hpp"
#include "command/task.hpp"
#include "oracle/runner.hpp"

namespace convladder::command {

/// A rung in one place, and what became of it.
struct Row {
  const Rung* rung = nullptr;
  Where where = Where::cpu;
  Outcome outcome;
};

/// A comparison's outcome.
struct Report {
  Task task;  ///< Without its arrays.
  Data data = Data::integer;
  std::vector<Row> rows;
  std::vector<std::int32_t> units;  ///< tile_map: the right answer, row by row.
};

/// Who is told about a comparison while it runs. Any function may be empty.
struct Observer {
  /// The reference is computed now, which is expected to take so many seconds.
  std::function<void(const Prepared&, double seconds)> start;
  std::function<void(const Seat&)> begin;
  std::function<void(const Row&, const std::vector<Row>& before)> end;
};

/// The problem with its right answer.
/// @throws BadInput if the problem does not fit into the memory, or its sums exceed float's range
Comparison comparison_of(const Task& task, Data data, Arrays inputs);

/// Runs all seats on the problem. @param keep_outputs for saving them
/// @param run_options how their arrays lie in memory
/// @throws BadInput if the problem does not fit into the memory, or its sums exceed float's range
Report run(Prepared prepared, const std::vector<Seat>& seats, bool keep_outputs,
           const Observer& observer, RunOptions run_options = {});

/// How many times faster a row is than the rung before it: in the same place or, if the rung before
/// has only a CPU version, than that. Empty where either has no time that means something.
std::optional<double> speed_up(const Row& row, const std::vector<Row>& before);

/// True where the time says something about the machine: not on the emulated GPU.
bool time_means_something(const Row& row);

/// `compare --json`.
std::string compare_json(const std::vector<Report>& reports);

/// True if CONVLADDER_REQUIRE_GPU is set, and not to 0: then it is a failure that there is no GPU.
bool gpu_required();

/// The exit status: kSomeDiffer if a row differs, or if CONVLADDER_REQUIRE_GPU=1 and a row was
/// skipped for want of a GPU, which a line on standard error then says.
int status_of(const std::vector<Report>& reports);

/// "12 agree, 1 differs, 2 declined, 8 skipped".
std::string tally(const std::vector<Report>& reports);

}  // namespace convladder::command
