/// @file mine.cu
/// @brief conv2d_wgrad, your way.
///
/// **The idea.** Write it down here, in a few lines and a picture.
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::student::conv2d_wgrad {
namespace {

/// Nothing where the rung takes the problem, or why not: a reason that a user understands.
Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// Scratch memory in bytes, of which `run` finds the begin in context.workspace_as<float>().
std::size_t workspace_bytes(const Conv2dProblem&) { return 0; }

/// x [N][C][H][W] and dy [N][K][P][Q] to dw [K][C/groups][R][S] and db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  // 7.1. Your kernels stand above, and are launched here.
  NOT_WRITTEN("7.1 run");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> mine = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::student::conv2d_wgrad
