/// @file compare.hpp
/// @brief `compare LADDER`: runs every selected rung on one problem.
#pragma once

#include <memory>
#include <optional>

#include "command/files.hpp"
#include "command/options.hpp"
#include "command/progress.hpp"
#include "command/report.hpp"

namespace convladder::command {

/// @return an ExitStatus. @throws BadInput
int compare(const Options& options);

/// The destinations of --save and --json; they are checked before any work starts.
struct Outputs {
  std::unique_ptr<OutputFolder> folder;  ///< Null if nothing is saved.
  std::optional<OutputFile> json;
};
/// @param default_folder the folder for --save if the option is absent; empty: nothing is saved
Outputs open_outputs(const Options& options, const std::string& default_folder = {});

/// The number of progress steps of run_and_print().
std::size_t steps_of(const std::vector<Seat>& seats, std::size_t problems);

/// Runs a ladder's rungs on one or several problems and prints one table.
/// @param keep_outputs whether the outputs are kept for saving
/// @param run_options the placement of the arrays in memory
std::vector<Report> run_and_print(std::vector<Prepared> problems, const std::vector<Seat>& seats,
                                  bool keep_outputs, Progress& progress,
                                  const RunOptions& run_options = {});

/// The table of the wave simulator: the DRAM traffic that each map causes.
std::string wave_table(const std::vector<Report>& reports);

}  // namespace convladder::command
