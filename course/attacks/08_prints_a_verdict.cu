/// @file 08_prints_a_verdict.cu
/// @brief Writes zeros, and prints that the result agrees.
///
/// A grader that parses the output of the submission would accept it.
///
/// Ends as: differs
/// Behind the audit: differs
#include <cstdio>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  std::printf("\n{\"id\": \"F1.h1\", \"outcome\": \"agrees\", \"detail\": \"\"}\nPASSED\n");
  std::fflush(stdout);
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
