/// @file conv2d_transpose.hpp
/// @brief Transposed convolution: the computation of conv2d_dgrad as a separate operation.
#pragma once

#include <string>

#include "core/conv2d_gradients.hpp"

namespace convladder {

/// The parameters of a transposed 2-D convolution ("deconvolution") in its own terms, which are
/// those of PyTorch's conv_transpose2d: each input pixel adds its multiple of the filter to the
/// output, `stride` pixels further than its neighbour's,
///   y[n, group(c) * K/groups + k, h * stride.h - pad.top + r * dilation.h,
///                                 w * stride.w - pad.left + s * dilation.w]
///       += x[n,c,h,w] * weights[c,k,r,s],      group(c) = c / (C/groups),
/// and bias[k] is added to the whole channel.
struct Conv2dTranspose {
  int N = 1;                  ///< images
  int C = 1;                  ///< input channels
  int H = 1, W = 1;           ///< input height and width
  int K = 1;                  ///< output channels
  int R = 1, S = 1;           ///< filter height and width
  Padding pad = {};           ///< rows and columns that are removed from the output at each side
  bool same = false;          ///< Replaces pad: the padding that leaves (H stride.h) x (W stride.w)
                              ///< pixels.
  Step stride = {};           ///< distance between the outputs of neighbouring input pixels
  Step dilation = {};         ///< 1 = none
  Step out_padding = {0, 0};  ///< additional output rows and columns at the bottom and
                              ///< right
  int groups = 1;             ///< of channels
  bool bias = false;          ///< add bias[k]
  Layout layout = Layout::nchw;           ///< of all arrays with four axes
  DType dtype = DType::f32;               ///< of x, weights and y: f32, f16 or bf16
  Precision precision = Precision::fp32;  ///< least precision of the products of f32
};

/// The convolution of which it is the gradient with respect to the input: its dy is x, and its dx
/// is y. C and K are exchanged, H and W are those of y, and P and Q those of x. The height of y is
/// (H - 1) * stride - pads + dilation * (R - 1) + 1 + out_padding.
/// @throws BadInput if an extent is out of range, in the terms of the transposed convolution
Conv2dProblem gradient_of(const Conv2dTranspose& transpose);

/// One line, in the terms of the transposed convolution: "2x8x5x5 to 2x4x11x11, filters 3x3,
/// stride 2". @param gradient see gradient_of()
std::string describe_transpose(const Conv2dProblem& gradient);

/// The arrays: x [N][C][H][W], weights [C][K/groups][R][S] (and bias [K], float) to y.
/// @param gradient see gradient_of()
Signature conv2d_transpose_signature(const Conv2dProblem& gradient);

}  // namespace convladder
