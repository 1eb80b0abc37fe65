/// @file 4x4.cu
/// @brief Winograd F(4 x 4, 3 x 3) for stride 1: the forward pass's GEMMs and transforms, applied
/// to dy.
///
/// - Before: implicit_gemm/residue_classes.cu
/// - After: 3xtf32.cu
/// - The kernels: cuda_optimized/conv2d/winograd/4x4.cu
/// - The same maths: cpu_reference/conv2d/winograd_4x4.cpp
///
/// **The idea.** With stride 1, dx is a convolution of dy: filters and channels are exchanged, a
/// filter is rotated by 180 degrees, and dy is padded by R - 1 - pad rows of zeros. So the forward
/// pass's algorithm applies, and only the transform of the weights differs: it reads the nine
/// elements of the filter, which is now a channel, from the last to the first.
///
///     forward    x  [C][H][W]   g [K][C][r][s]           pad        y  [K][P][Q]
///     here       dy [K][P][Q]   g [C][K][2 - r][2 - s]   2 - pad    dx [C][H][W]
///
/// A padding of more than 2 becomes negative. It needs no separate case: tiles then begin inside of
/// dy, and the pixels before them only contribute to padding.
///
/// **Expect.** The time of the forward pass with C and K exchanged: B4 (32x64x56x56, 64 filters)
/// 115 us, B6 85 us, B7 90 us, B9 850 us, B10 1450 us, by the bytes and products that
/// cuda_optimized/conv2d/winograd/4x4.cu counts. Only the weights are read with fewer sectors: the
/// filters of adjacent threads are 36 bytes apart instead of 36 C.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 16 --r 3 --s 3 --pad 1
/// @expect loads_per_output.dy 16 * 22 * 22 / 16384 = 0.4727, windows of 6, 22 of 24 rows inside
/// @expect loads_per_output.weights 9 * 64 * 16 / 16384 = 0.5625, each weight once
/// @expect loads_per_output.workspace 1.125 + 2.25 = 3.375, U and V in fours; M
/// @expect launches 4
/// **Costs.** Rounding errors, workspace, and NaN in whole tiles, as the forward rung. Not
/// supported: all but 3 x 3 with stride and dilation 1, NHWC, and other types than float32.
/// **Try.** With stride 2, each residue class of pixels has a filter of its own, of 1 or 2 taps
/// along each axis. What would F(m, 2) save there?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/winograd/4x4.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

constexpr int kM = 4;  ///< Outputs of a tile along each axis.

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

conv2d::WinogradProduct product_of(const Conv2dProblem& back) {
  return conv2d::product_4x4(back, conv2d::WinogradTiles(back, kM).all);
}

Declined supports(const Conv2dProblem& conv) { return conv2d::why_no_tiles_4x4(turned(conv)); }

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return product_of(turned(conv)).workspace_bytes();
}

/// dy [N][K][P][Q], weights [K][C/groups][3][3], dx [N][C][H][W].
void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const Conv2dProblem back = turned(conv);
  const conv2d::WinogradProduct product = product_of(back);
  float* const u = context.workspace_as<float>();
  conv2d::launch_weights_4x4(back, product, arrays.weights, conv2d::WeightsOrder::turned, u);
  conv2d::launch_tiles_4x4(back, product, 0, conv2d::WinogradTiles(back, kM).all,
                           {.x = arrays.dy, .weights = arrays.weights, .bias = {}, .y = arrays.dx},
                           u, u + product.u_floats());
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Conv2dProblem back = turned(conv);
  return conv2d::product_4x4_in_words(back, conv2d::WinogradTiles(back, kM).all);
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> winograd_4x4 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
