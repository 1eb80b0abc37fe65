/// @file 3xtf32.cu
/// @brief Winograd F(4 x 4, 3 x 3) on tensor cores: its GEMMs are computed in 3xTF32, with the
/// accuracy of float.
///
/// - Before: 4x4.cu
/// - The kernels: cuda_optimized/conv2d/winograd/3xtf32.cu
/// - The same maths: cpu_reference/conv2d/winograd_4x4.cpp
///
/// **The idea.** As in conv2d/winograd/3xtf32: three products in TF32 replace one of floats, at
/// twice the speed of FMA. As in winograd/4x4, only the transform of the weights differs from the
/// forward pass: it reads a filter from the last element to the first, and exchanges filters and
/// channels.
///
///     u [frequency][c][k]  =  transform of  weights [k][c][2 - r][2 - s]       rows along k
///     v [frequency][k][tile]  of dy   ->   dx, tile by tile
///
/// **Expect.** The time of the forward pass with C and K exchanged: B4 (32x64x56x56, 64 filters) 90
/// us, B6 62 us, B7 75 us, B9 640 us, B10 790 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 16 --r 3 --s 3 --pad 1
/// @expect launches 4, U, V, products, dx
/// @expect requests.shared.async 36 * (1 + 4) = 180, for each product a step of U and of V
/// @expect loads_per_output.dy 16 * 22 * 22 / 16384 = 0.4727, windows of 6, 22 of 24 rows inside
/// @expect loads_per_output.weights 9 * 64 * 16 / 16384 = 0.5625, each weight once
/// **Costs.** Compute capability 9.0 only. Filters are rounded up to 32, channels to 64. Otherwise
/// as winograd/4x4.
/// **Try.** U of the gradient is U of the forward pass with rows and columns exchanged, and its
/// frequencies in another order. Which order, and what would a training step save?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/winograd/3xtf32.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

/// The convolution of dy whose output is dx. It is not validated(): its padding may be negative.
Conv2dProblem turned(const Conv2dProblem& conv) {
  Conv2dProblem back = conv;
  back.C = conv.K, back.H = conv.P, back.W = conv.Q;
  back.K = conv.C, back.P = conv.H, back.Q = conv.W;
  back.pad = {conv.R - 1 - conv.pad.top, conv.R - 1 - conv.pad.bottom, conv.S - 1 - conv.pad.left,
              conv.S - 1 - conv.pad.right};
  back.bias = false, back.activation = Activation::none;
  return back;
}

Declined supports(const Conv2dProblem& conv) {
  return conv2d::why_no_winograd_3xtf32(turned(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return conv2d::winograd_3xtf32_bytes(turned(conv));
}

/// dy [N][K][P][Q], weights [K][C/groups][3][3], dx [N][C][H][W].
void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  conv2d::launch_winograd_3xtf32(
      turned(conv), {.x = arrays.dy, .weights = arrays.weights, .bias = {}, .y = arrays.dx},
      conv2d::WeightsOrder::turned, context.workspace_as<float>());
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> winograd_3xtf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
