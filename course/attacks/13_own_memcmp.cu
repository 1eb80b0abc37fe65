/// @file 13_own_memcmp.cu
/// @brief Defines a memcmp that reports all arrays as equal.
///
/// If it were linked into the grader, the grader would call it.
///
/// Ends as: refused
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

extern "C" int memcmp(const void*, const void*, unsigned long) { return 0; }

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
