/// @file gemm_col2im.cu
/// @brief GEMM and col2im: a tiled GEMM computes the columns' gradients, and col2im adds them into
/// dx.
///
/// - Before: cuda_naive/conv2d_dgrad/gather.cu
/// - The kernels: cuda_optimized/gemm/shared/tiled_batched.cu,
/// cuda_optimized/col2im/col2im_batched.cu
/// - The same maths: cpu_reference/conv2d_dgrad/gemm_col2im.cpp
///
/// **The idea.** The sum over output channels is a GEMM, col = w^T * dy, for each image and group;
/// the sum over taps is col2im. The GEMM reuses each element of dy and w that it loads for a whole
/// tile of col. col2im gathers finished sums, so it has no loop over k.
///
///               K/G                P*Q                    P*Q
///     C/G*R*S [ w^T ]   x   K/G [  dy  ]   =   C/G*R*S [  col  ]   -- col2im -->  dx
///
/// Nothing is transposed in memory: w^T is w with its two strides swapped.
///
/// **Expect.** Two launches for as many images as the workspace holds. Each element of col is
/// written and read once, 8 bytes for K/G multiply-adds: with few output channels a group that
/// dominates.
/// @expect lanes_per_output.workspace.store 9, an element of col is written once
/// @expect loads_per_output.workspace 9 * 46 * 46 / (48 * 48) = 8.266, and read once
/// @expect loads_per_output.weights 9 * 64 / 32 = 18, tiles of 32 pixels
/// @expect launches 2
/// **Costs.** Workspace for columns, as many images as fit kColumnBudget. Not supported: other
/// layouts than NCHW, other types than float32, 2^31 and more rows or columns.
/// **Try.** Set kColumnBudget (im2col/shared/column_budget.cuh) to 4 MB, then to 1 GB. Which of the
/// two kernels takes longer now, and why?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/batched_gemm.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/col2im/col2im_batched.cuh"
#include "cuda_optimized/gemm/shared/tiled_batched.cuh"
#include "cuda_optimized/im2col/shared/column_budget.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return columns_too_large(conv);
}

/// dy [N][K][P][Q], weights [K][C/groups][R][S], dx [N][C][H][W].
void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const float* dy = arrays.dy;
  const float* weights = arrays.weights;
  float* dx = arrays.dx;
  float* col = context.workspace_as<float>();

  const int step = images_at_a_time(conv);
  for (std::int64_t n = 0; n < conv.N; n += step) {
    const int images = static_cast<int>(std::min<std::int64_t>(step, conv.N - n));
    const Im2colProblem columns = columns_of_images(conv, images);
    const std::int64_t windows = columns.columns();                // P * Q
    const std::int64_t group_rows = columns.rows() / conv.groups;  // C/G * R * S
    const std::int64_t group_k = conv.K / conv.groups;

    gemm::launch_gemm_tiled({.M = static_cast<int>(group_rows),
                             .N = static_cast<int>(windows),
                             .K = static_cast<int>(group_k),
                             .images = images,
                             .groups = conv.groups,
                             .a = {.data = weights,  // transposed, the same for all images
                                   .row_stride = 1,
                                   .column_stride = group_rows,
                                   .group_stride = group_k * group_rows},
                             .b = {.data = dy + n * conv.K * windows,
                                   .row_stride = windows,
                                   .column_stride = 1,
                                   .image_stride = conv.K * windows,
                                   .group_stride = group_k * windows},
                             .c = {.data = col,
                                   .row_stride = windows,
                                   .column_stride = 1,
                                   .image_stride = columns.rows() * windows,
                                   .group_stride = group_rows * windows}});
    col2im::col2im_batched(columns, {col, dx + n * conv.C * columns.channel_size()});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) { return images_in_words(conv); }

}  // namespace

extern const Implementation<Conv2dDgradArrays> gemm_col2im = {
    .supports = supports,
    .workspace_bytes = column_workspace,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
