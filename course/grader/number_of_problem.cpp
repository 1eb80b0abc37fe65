/// @file number_of_problem.cpp
/// @brief Prints what a problem tells without running anything: its extents, and what follows.
///
///     number_of_problem LADDER NUMBER OPTION...     problem.p --h 9 ...
#include <cstdio>

#include "check/trial.hpp"
#include "core/error.hpp"

int main(int count, char** words) {
  using namespace convladder;
  try {
    require(count >= 3, "arguments", count - 1, "must be a ladder, a number and a problem");
    const check::Trial trial = check::read_trial(words[1], {words + 3, words + count});
    std::printf("%.17g\n", check::number_of(words[2], trial.problem).value());
    return 0;
  } catch (const BadInput& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
