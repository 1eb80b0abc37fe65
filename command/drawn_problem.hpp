/// @file drawn_problem.hpp
/// @brief Problems for `fuzz`, as options: what their numbers are, and making them simpler.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "core/rung.hpp"

namespace convladder::command {

/// A problem as the options of `compare` that describe it, without "--": so that it can be pasted.
struct DrawnProblem {
  std::string ladder;
  std::map<std::string, std::string> options;  ///< "pad" is "1,0"; a bare option is "".

  bool operator==(const DrawnProblem&) const = default;
};

/// The command line that compares one rung on it. Of options that must make no difference, those
/// that are set stand in it, too.
std::string command_line(const DrawnProblem& problem, const std::string& rung, Where where);

/// The same as read_tasks() and prepare() want it.
Options options_of(const DrawnProblem& problem);

/// What the simplest value of a number is, by the option's name.
int simplest(const std::string& option);

/// "3" or "1,0,2" as numbers; empty for words.
std::vector<int> numbers_in(const std::string& value);

/// Numbers as an option's value: one, if all axes have the same.
std::string value_of(const std::string& option, const std::vector<int>& numbers);

/// Sets an option to numbers.
void set(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers);

/// Sets what is not the default.
void set_unless(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers);

/// Problems that are simpler than this one by one step, the simplest first.
std::vector<DrawnProblem> simpler(const DrawnProblem& problem);

/// A number of an option in which two problems differ, if that is all in which they differ.
struct OneDifference {
  std::string option;
  std::size_t index = 0;  ///< Which of the option's numbers,
  std::size_t count = 1;  ///< of so many.
  int a = 0, b = 0;       ///< Its values.
};
std::optional<OneDifference> one_difference(const DrawnProblem& a, const DrawnProblem& b);

/// The problem with another value there.
DrawnProblem with_value(DrawnProblem problem, const OneDifference& place, int value);

}  // namespace convladder::command
