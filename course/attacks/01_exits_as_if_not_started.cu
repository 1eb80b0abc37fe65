/// @file 01_exits_as_if_not_started.cu
/// @brief Ends as a worker would that could not be started, in words and status.
///
/// A grader that believed it would stop, and leave all submissions behind it ungraded.
///
/// Ends as: ended_early
/// Behind the audit: ended_early
#include <cstdio>
#include <cstdlib>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  std::fputs("cannot be started: execveat: Operation not permitted", stderr);
  std::_Exit(125);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
