/// @file 05_takes_all_memory.cu
/// @brief Allocates memory and writes to it until none is left.
///
/// Without a limit, other graders on the machine would run out of memory.
///
/// Ends as: memory
/// Behind the audit: memory
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  std::vector<std::vector<char>> all;
  while (true) all.emplace_back(std::size_t{1} << 26, 'x');
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
