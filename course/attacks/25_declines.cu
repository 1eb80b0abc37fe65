/// @file 25_declines.cu
/// @brief Declines what is hard: everything.
///
/// What is declined cannot be wrong.
///
/// Ends as: declined
/// Behind the audit: declined
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

Declined supports(const Conv2dProblem&) { return "too hard"; }

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.supports = supports, .run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
