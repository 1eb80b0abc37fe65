/// @file im2col_gemm.cpp
/// @brief im2col and GEMM: windows become the columns of a matrix, the convolution becomes a GEMM.
///
/// - Before: direct.cpp
/// - After: cuda_naive/conv2d/im2col_gemm.cu, implicit_gemm.cpp
/// - On the GPU: cuda_naive/conv2d/im2col_gemm.cu
///
/// **The idea.** im2col writes each window of an image as a column of a matrix; the filters are
/// rows already. All outputs of the image are then one GEMM, for which fast libraries exist (here
/// Eigen). (Chellapilla, Puri and Simard, "High performance convolutional neural networks for
/// document processing", 2006; Caffe made the method popular.)
///
///            C/G*R*S                    P*Q                   P*Q
///     K/G [  weights  ]   x   C/G*R*S [  col  ]   =   K/G [    y    ]      + bias
///
/// Each group is a separate GEMM with its own rows of weights, col and y.
///
/// **Expect.** Close to the core's arithmetic peak for many channels: a GEMM uses each value that
/// it loads many times.
/// **Costs.** Workspace for the columns of one image: C * R * S * P * Q floats, about R * S times
/// the image, written once and read again. Supports layout NCHW and float32 only.
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/gemm/product.hpp"
#include "cpu_reference/im2col/im2col.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

Im2colProblem columns_of_one_image(Conv2dProblem conv) {
  conv.N = 1;
  return columns_of(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  if (conv.N == 0) return 0;  // independent of the size of the image
  const Im2colProblem columns = columns_of_one_image(conv);
  return static_cast<std::size_t>(
      checked_product({columns.rows(), columns.columns(), sizeof(float)}, "bytes of columns"));
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  float* y = arrays.y;
  float* col = context.workspace_as<float>();

  const Im2colProblem columns = columns_of_one_image(conv);
  const std::int64_t windows = columns.columns();                // P * Q
  const std::int64_t group_rows = columns.rows() / conv.groups;  // C/G * R * S
  const std::int64_t group_k = conv.K / conv.groups;
  const std::int64_t image_size = columns.C * columns.channel_size();

  for (std::int64_t n = 0; n < conv.N; ++n) {
    im2col::im2col(columns, {x + n * image_size, col});
    for (std::int64_t g = 0; g < conv.groups; ++g) {
      const std::int64_t k0 = g * group_k;  // the group's first output channel
      float* y_ng = y + (n * conv.K + k0) * windows;
      gemm::multiply(group_k, windows, group_rows, {weights + k0 * group_rows},
                     {col + g * group_rows * windows}, y_ng);
      for (std::int64_t i = 0; i < group_k * windows; ++i) {
        const float sum = bias ? y_ng[i] + bias[k0 + i / windows] : y_ng[i];
        y_ng[i] = activated(conv.activation, sum);
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> im2col_gemm = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
