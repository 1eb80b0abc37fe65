/// @file 15_compile_bomb.cu
/// @brief Templates without end, and an array of a terabyte.
///
/// The compiler takes the machine down before a kernel runs.
///
/// Ends as: no_build
/// Behind the audit: no_build
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

template <int kDepth>
struct Deep {
  static constexpr int value = Deep<kDepth - 1>::value + Deep<kDepth - 2>::value;
};

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  static_cast<void>(Deep<100000>::value);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
