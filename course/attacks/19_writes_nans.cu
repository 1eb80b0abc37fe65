/// @file 19_writes_nans.cu
/// @brief Writes NaN everywhere.
///
/// `difference > tolerance` is false of a NaN.
///
/// Ends as: differs
/// Behind the audit: differs
#include <cmath>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void nans(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = NAN;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(nans, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
