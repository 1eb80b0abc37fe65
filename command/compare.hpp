/// @file compare.hpp
/// @brief `compare LADDER`: every chosen rung on one problem.
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

/// Where --save and --json go; checked before any work begins.
struct Outputs {
  std::unique_ptr<OutputFolder> folder;  ///< Null: nothing is saved.
  std::optional<OutputFile> json;
};
/// @param default_folder what --save is if it is not given; empty: nothing is saved
Outputs open_outputs(const Options& options, const std::string& default_folder = {});

/// Steps of a progress bar for run_and_print().
std::size_t steps_of(const std::vector<Seat>& seats, std::size_t problems);

/// Runs a ladder's rungs on one or several problems and prints one table.
/// @param keep_outputs for saving them
/// @param run_options how arrays lie in memory
std::vector<Report> run_and_print(std::vector<Prepared> problems, const std::vector<Seat>& seats,
                                  bool keep_outputs, Progress& progress,
                                  const RunOptions& run_options = {});

/// The table of the wave simulator: what the maps' reports mean for a GPU's memory traffic.
std::string wave_table(const std::vector<Report>& reports);

}  // namespace convladder::command
