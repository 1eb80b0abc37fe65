/// @file fuzz_failures.hpp
/// @brief What `fuzz` finds: the failures, in as simple problems as there are, and the log of it.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "command/drawn_problem.hpp"

namespace convladder::command {

using Json = nlohmann::ordered_json;

/// What happened, line by line, so that nothing is lost with a process.
class Log {
 public:
  /// @throws BadInput if no file can be opened
  Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { std::fclose(file_); }

  /// A line more.
  void add(const Json& entry);
  /// Visits the lines from the first on.
  void for_each(const std::function<void(const Json&)>& visit);

 private:
  std::FILE* file_;
};

/// A drawn problem as JSON,
Json json_of(const DrawnProblem& problem);
/// and back.
DrawnProblem problem_in(const Json& json);

/// What is wrong with a rung on a problem; empty: nothing, or the problem is none.
using FaultFinder = std::function<std::string(const DrawnProblem&)>;

/// A problem on which a rung fails.
struct Failure {
  DrawnProblem problem;
  std::string message;
  bool shrunk = false;  ///< Nothing simpler fails, as far as there was time to try.
};

/// Makes the problem simpler for as long as the rung fails on it, whatever the fault is then.
/// @param limit seconds that a run may take
Failure shrunk(Failure failure, const FaultFinder& fault_on, int limit);

/// A failure for the log and for `--json`.
Json entry_of(const Failure& failure, const std::string& rung, Where where);

/// The same as lines for a terminal.
std::string lines_of(const Json& failure);

}  // namespace convladder::command
