/// @file 02_never_ends.cu
/// @brief A kernel that goes round for ever.
///
/// It would keep a grader without a clock of its own.
///
/// Ends as: timeout
/// Behind the audit: timeout
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void turn(volatile float* y) {
  while (y[0] != 1) y[0] = 2;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv);
  launch(turn, {1, 1, 0}, arrays.y.as<float>());
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
