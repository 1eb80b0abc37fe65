/// @file 01_exits.cu
/// @brief Ends the process with status 0, before anything is computed.
///
/// A grader that reads exit statuses would call this a success.
///
/// Ends as: ended_early
/// Behind the audit: ended_early
#include <cstdlib>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  std::exit(0);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
