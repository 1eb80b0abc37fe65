/// @file 23_hostile_words.cu
/// @brief Fails with words that are HTML, a terminal's commands and a formula.
///
/// A report that shows them as they are would do what they say.
///
/// Ends as: differs
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr const char* kWords = "<script>alert(1)</script> ]]> \x1b[31m\x07 =cmd() \r\n,\"";

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  static_cast<void>(conv), static_cast<void>(arrays);
  throw DeviceError(kWords);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
