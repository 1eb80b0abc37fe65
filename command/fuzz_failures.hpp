/// @file fuzz_failures.hpp
/// @brief The failures that `fuzz` finds, in simplified problems, and its log.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "command/drawn_problem.hpp"

namespace convladder::command {

using Json = nlohmann::ordered_json;

/// A log, line by line, that survives the end of a process.
class Log {
 public:
  /// @throws BadInput if no file can be opened
  Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { std::fclose(file_); }

  /// Appends a line.
  void add(const Json& entry);
  /// Visits the lines from the first on.
  void for_each(const std::function<void(const Json&)>& visit);

 private:
  std::FILE* file_;
};

/// A drawn problem as JSON.
Json json_of(const DrawnProblem& problem);
/// The inverse of the function above.
DrawnProblem problem_in(const Json& json);

/// What is wrong with a rung on a problem; empty if nothing is wrong or the problem is invalid.
using FaultFinder = std::function<std::string(const DrawnProblem&)>;

/// A problem on which a rung fails.
struct Failure {
  DrawnProblem problem;
  std::string message;
  bool shrunk = false;  ///< No simpler problem fails, as far as the time limit allowed a search.
};

/// Simplifies the problem for as long as the rung fails on it, with any failure.
/// @param limit seconds for one run
Failure shrunk(Failure failure, const FaultFinder& fault_on, int limit);

/// A failure for the log and for `--json`.
Json entry_of(const Failure& failure, const std::string& rung, Where where);

/// The same as lines for a terminal.
std::string lines_of(const Json& failure);

}  // namespace convladder::command
