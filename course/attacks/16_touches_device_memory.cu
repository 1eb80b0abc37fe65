/// @file 16_touches_device_memory.cu
/// @brief The host writes to the device's memory as if it was its own.
///
/// On a CPU it is its own: cuda_on_cpu locks it.
///
/// Ends as: crashed
/// Behind the audit: crashed
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv);
  *arrays.y.as<float>() = 1;
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
