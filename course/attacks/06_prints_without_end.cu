/// @file 06_prints_without_end.cu
/// @brief Prints until the disk is full.
///
/// What a run prints is read through a pipe and cut off.
///
/// Ends as: crashed
/// Behind the audit: crashed
#include <cstdio>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  while (true) std::puts("0123456789012345678901234567890123456789012345678901234567890");
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
