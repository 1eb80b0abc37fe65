/// @file 10_reads_its_surroundings.cu
/// @brief Looks for a key in the environment and in open descriptors.
///
/// The hidden cases are drawn by a key; whoever has it has them.
///
/// Ends as: refused
/// Behind the audit: differs
#include <cstdlib>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

extern char** environ;
extern "C" long read(int, void*, unsigned long);

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  int found = environ != nullptr && environ[0] != nullptr;
  char byte = 0;
  for (int file = 3; file < 64; ++file) found += read(file, &byte, 1) > 0;
  if (found > 0) std::_Exit(42);
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
