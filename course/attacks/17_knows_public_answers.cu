/// @file 17_knows_public_answers.cu
/// @brief Right for a problem that everybody knows, and zeros for all others.
///
/// Its case has been printed before: hidden ones have other sizes, and other data.
///
/// Ends as: differs
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void answers(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  constexpr float kKnown[] = {27, -165, 63, 40};
  if (i < count) y[i] = kKnown[i % 4];
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(answers, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
