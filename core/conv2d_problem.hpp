/// @file conv2d_problem.hpp
/// @brief The parameters of a 2-D convolution, shared by its forward pass and its two gradients.
#pragma once

#include <cstdint>
#include <string>

#include "core/activation.hpp"
#include "core/arithmetic.hpp"
#include "core/types.hpp"

namespace convladder {

/// Rows and columns of zeros around each image.
struct Padding {
  int top = 0, bottom = 0, left = 0, right = 0;  ///< at each side
};

/// A value for the vertical axis and one for the horizontal axis.
struct Step {
  int h = 1, w = 1;  ///< down, across
};

/// The layout of the arrays in the memory of a rung: channels outermost within an image, or
/// innermost. With nhwc, x and dx are [N][H][W][C], y and dy [N][P][Q][K], weights and dw
/// [K][R][S][C/groups].
enum class Layout { nchw, nhwc };

/// The name on the command line: "nhwc".
constexpr const char* name_of(Layout layout) { return layout == Layout::nchw ? "nchw" : "nhwc"; }

/// Offset in an array [..][B][C][D] of a convolution in one of the layouts.
struct LayoutIndex4 {
  Layout layout;  ///< With nhwc, B is innermost.
  int B, C, D;    ///< The inner extents, in the order of nchw.
  /// The offset of element [a][b][c][d].
  HOST_DEVICE constexpr std::int64_t operator()(int a, int b, int c, int d) const {
    return layout == Layout::nchw ? Index4{B, C, D}(a, b, c, d) : Index4{C, D, B}(a, c, d, b);
  }
};

/// y[n,k,p,q] = bias[k] + sum over c, r, s of
///   x[n, group(k) * C/groups + c, p * stride.h - pad.top + r * dilation.h,
///                                 q * stride.w - pad.left + s * dilation.w] * w[k,c,r,s]
/// with zeros outside of x and group(k) = k / (K/groups). This is cross-correlation, as in every
/// deep learning library; the "convolution" of signal processing also flips the filter. The forward
/// pass stores activated() sums.
///
/// With f16 or bf16, x, weights, y, dy and dx have that type; accumulators are float, and results
/// are rounded once. bias, dw and db stay float.
///
/// The map assigns tiles of the forward pass as a GEMM to blocks, see gemm_extents(); the result
/// does not depend on it. Rungs without such tiles and the gradients ignore it; the others decline
/// maps that they do not support. Build it with validated(), which also computes P and Q. Kernels
/// take it by value.
struct Conv2dProblem {
  int N = 1;                                 ///< images
  int C = 1;                                 ///< input channels
  int H = 1, W = 1;                          ///< input height and width
  int K = 1;                                 ///< output channels
  int R = 1, S = 1;                          ///< filter height and width
  Padding pad = {};                          ///< zeros around each image
  Step stride = {};                          ///< distance between neighbouring windows
  Step dilation = {};                        ///< 1 = none
  int groups = 1;                            ///< groups = C is a depthwise convolution
  bool bias = false;                         ///< add bias[k] (forward)
  Activation activation = Activation::none;  ///< applied to the sums with their bias (forward)
  Layout layout = Layout::nchw;              ///< of all arrays with four axes
  TileMap map = TileMap::row_major;          ///< of the forward pass as a GEMM, see above
  DType dtype = DType::f32;                  ///< of the arrays, see above: f32, f16 or bf16
  Precision precision = Precision::fp32;     ///< least precision of the products of f32
  int P = 0, Q = 0;                          ///< output height and width, set by validated()
};

/// The same problem with P and Q.
/// @throws BadInput if an extent is out of range, C or K is not a multiple of groups, P or Q would
/// be less than 1, an array would have more than 2^63 - 1 elements, or dtype is an integer.
Conv2dProblem validated(Conv2dProblem problem);

/// One line: "1x6x768x512, 6 filters 6x6, pad 0, stride 1".
std::string describe(const Conv2dProblem& problem);

/// The arrays of the forward pass: x, weights (and bias) to y.
Signature conv2d_signature(const Conv2dProblem& problem);
/// The arrays of the forward pass at the place where a rung runs; shapes are those of Layout::nchw.
struct Conv2dArrays {
  using Problem = Conv2dProblem;  ///< The problem type of these arrays.
  Input x = {};                   ///< [N][C][H][W]
  Input weights = {};             ///< [K][C/groups][R][S]
  Input bias = {};                ///< [K], float, or null
  Output y = {};                  ///< [N][K][P][Q]
};
/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const Conv2dProblem& problem, const Conv2dArrays& arrays);

}  // namespace convladder
