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

/// A rung at one place, and its result.
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
  std::vector<std::int32_t> units;  ///< tile_map: the reference result, row by row.
};

/// Callbacks during a comparison. Any function may be empty.
struct Observer {
  /// The computation of the reference starts; it is expected to take this many seconds.
  std::function<void(const Prepared&, double seconds)> start;
  std::function<void(const Seat&)> begin;
  std::function<void(const Row&, const std::vector<Row>& before)> end;
};

/// The problem with its reference result.
/// @throws BadInput if the problem does not fit into memory, or its sums exceed the range of float
Comparison comparison_of(const Task& task, Data data, Arrays inputs);

/// Runs all seats on the problem. @param keep_outputs whether the outputs are kept for saving
/// @param run_options the placement of the arrays in memory
/// @throws BadInput if the problem does not fit into memory, or its sums exceed the range of float
Report run(Prepared prepared, const std::vector<Seat>& seats, bool keep_outputs,
           const Observer& observer, RunOptions run_options = {});

/// The speed-up of a row over the previous rung, at the same place or, if the previous rung has
/// only a CPU version, on the CPU. Empty if either time is not meaningful.
std::optional<double> speed_up(const Row& row, const std::vector<Row>& before);

/// True if the time characterises the machine; false for the emulated GPU.
bool time_means_something(const Row& row);

/// `compare --json`.
std::string compare_json(const std::vector<Report>& reports);

/// True if CONVLADDER_REQUIRE_GPU is set to a value other than 0: the absence of a GPU is then a
/// failure.
bool gpu_required();

/// The exit status: kSomeDiffer if a row differs, or if CONVLADDER_REQUIRE_GPU=1 and a row was
/// skipped because there is no GPU, which a line on standard error reports.
int status_of(const std::vector<Report>& reports);

/// "12 agree, 1 differs, 2 declined, 8 skipped".
std::string tally(const std::vector<Report>& reports);

}  // namespace convladder::command
