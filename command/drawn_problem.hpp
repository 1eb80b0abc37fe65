/// @file drawn_problem.hpp
/// @brief Problems of `fuzz` as options: their numbers, and simpler variants of them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "core/rung.hpp"

namespace convladder::command {

/// A problem as the options of `compare` that describe it, without "--". The options can be pasted
/// into a command line.
struct DrawnProblem {
  std::string ladder;
  std::map<std::string, std::string> options;  ///< "pad" is "1,0"; a bare option is "".

  bool operator==(const DrawnProblem&) const = default;
};

/// The command line that compares one rung on the problem, including the conditions that are set.
std::string command_line(const DrawnProblem& problem, const std::string& rung, Where where);

/// The problem in the form that read_tasks() and prepare() accept.
Options options_of(const DrawnProblem& problem);

/// The simplest value of a numeric option, by the option's name.
int simplest(const std::string& option);

/// "3" or "1,0,2" as numbers; empty for text.
std::vector<int> numbers_in(const std::string& value);

/// Numbers as the value of an option: a single number if all axes have the same value.
std::string value_of(const std::string& option, const std::vector<int>& numbers);

/// Sets an option to numbers.
void set(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers);

/// Sets an option if the value is not the default.
void set_unless(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers);

/// Problems that are one step simpler than this one, the simplest first.
std::vector<DrawnProblem> simpler(const DrawnProblem& problem);

/// The only number of an option in which two problems differ; empty if they differ in more.
struct OneDifference {
  std::string option;
  std::size_t index = 0;  ///< Index of the number within the option.
  std::size_t count = 1;  ///< Count of numbers of the option.
  int a = 0, b = 0;       ///< The two values.
};
std::optional<OneDifference> one_difference(const DrawnProblem& a, const DrawnProblem& b);

/// The problem with another value of that number.
DrawnProblem with_value(DrawnProblem problem, const OneDifference& place, int value);

}  // namespace convladder::command
