/// @file program.hpp
/// @brief The program `convladder`: what `./ladder compare`, `list` and `bench` run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace convladder::command {

/// The program's exit statuses.
enum ExitStatus {
  kAllAgree = 0,
  kSomeDiffer = 1,
  kBadInput = 2,
  kSetUpFailed = 3,  // a library of rungs is missing; otherwise the script says so
  kProgramError = 4,
  kInterrupted = 130
};

/// Does it, and reports what it throws on standard error. @return its status, or that of the error
int reported(const std::function<int()>& body);

/// Does what the arguments, without the program's name, ask for; never throws.
/// @return an ExitStatus
int run_program(const std::vector<std::string>& arguments);

}  // namespace convladder::command
