/// @file 14_assembler.cu
/// @brief Calls the system by its own instruction.
///
/// No name is asked for that could be looked for.
///
/// Ends as: refused
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

long call(long number) {
  long result = number;
#if defined(__x86_64__)
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
#endif
  return result;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(call(57));  // fork
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
