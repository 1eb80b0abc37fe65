/// @file 18_keeps_what_it_had.cu
/// @brief Remembers results from run to run.
///
/// The second run of a case would be the first one's copy.
///
/// Ends as: differs
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

float* kept = nullptr;

__global__ void again(const float* from, float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count && from != nullptr) y[i] = from[i];
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(again, {blocks_for(count, 256), 256, 0}, kept, arrays.y.as<float>(), count);
  kept = arrays.y.as<float>();
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
