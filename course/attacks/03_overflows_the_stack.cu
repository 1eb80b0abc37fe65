/// @file 03_overflows_the_stack.cu
/// @brief Calls itself without end.
///
/// It takes its own process with it, and should take no other.
///
/// Ends as: crashed
/// Behind the audit: crashed
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

int depth(volatile int* below) {
  volatile int here = *below + 1;
  return depth(&here) + here;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  volatile int none = 0;
  none = depth(&none);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
