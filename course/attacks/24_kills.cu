/// @file 24_kills.cu
/// @brief Kills every process that it may, and stops its parent.
///
/// No process would be left to report the result.
///
/// Ends as: refused
/// Behind the audit: differs
#include <cstdlib>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

extern "C" int kill(int, int);
extern "C" int getppid();

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  // Signal 0 kills no process, and reports whether that is permitted.
  if (kill(getppid(), 0) == 0 || kill(-1, 0) == 0) std::_Exit(42);
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
