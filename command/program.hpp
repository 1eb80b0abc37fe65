/// @file program.hpp
/// @brief The program `convladder`, which runs `./ladder compare`, `list` and `bench`.
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
  kSetUpFailed = 3,  // a library of rungs is missing; otherwise the script reports it
  kProgramError = 4,
  kInterrupted = 130
};

/// Calls the function and reports its exceptions on standard error. @return its status, or that of
/// the error
int reported(const std::function<int()>& body);

/// Runs the command that the arguments describe (without the program's name); never throws.
/// @return an ExitStatus
int run_program(const std::vector<std::string>& arguments);

}  // namespace convladder::command
