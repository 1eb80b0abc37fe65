/// @file im2col_gemm.cu
/// @brief im2col and GEMM: two kernels per image, columns pass through global memory.
///
/// - Before: cpu_reference/conv2d/im2col_gemm.cpp
/// - After: implicit_gemm.cu, winograd_2x2.cu,
///   cuda_optimized/conv2d/implicit_gemm/im2col_l2_blocked.cu
/// - Made of: cuda_naive/im2col/im2col.cu, cuda_naive/gemm/direct.cu
///
/// **The idea.** im2col turns a convolution into a GEMM, for which fast kernels exist. Caffe and
/// MXNet process one image after the other, so that one column matrix serves the whole batch.
///
///     for each image    x[n] -- im2col --> col [C*R*S][P*Q]
///                       for each group (blockIdx.z):  y[n] = weights * col + bias
///
/// With a 1 x 1 filter, stride 1 and no padding, the column matrix is the image, [C][H*W]. In this
/// case nothing is copied, and one launch computes the GEMMs of all images. The GEMM adds the bias;
/// a third kernel reads y again to apply ReLU.
///
/// **Expect.** The columns take R * S times the bytes of x; they are written once and read K/G
/// times. Two launches per image. ReLU reads and writes y once more: 2 x 26 MB at B4. Fused into
/// the GEMM's epilogue (implicit_gemm/cp_async.cu), ReLU costs one instruction per output.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect lanes_per_output.workspace.store 144 * 256 / (64 * 256) = 2.25, columns, once
/// @expect loads_per_output.workspace 16 * 3 * 3 = 144, and read once a filter
/// @expect loads_per_output.weights 16 * 3 * 3 = 144
/// @expect launches 2, for an image
/// **Costs.** Workspace for the columns of one image. Requires P * Q and C/groups * R * S below
/// 2^31; supports layout NCHW and float32 only.
/// **Try.** Apply the activation in the GEMM and remove the third kernel. How does the difference
/// between the times of B4 with and without ReLU change?
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_naive/gemm/direct_batched.cuh"
#include "cuda_naive/im2col/im2col.cuh"

namespace convladder::BACKEND::cuda_naive::conv2d {
namespace {

constexpr int kThreads = 256;  ///< Threads per block of conv2d_im2col_gemm_activate.
/// Enough blocks to fill any current GPU: 132 SMs hold 8 blocks of 256 threads each. Larger
/// problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 2048;

/// y [count], in place. Launch with any one-dimensional grid.
__global__ void conv2d_im2col_gemm_activate(Activation activation, std::int64_t count, float* y) {
  for (const std::int64_t i : grid_stride(count)) y[i] = activated(activation, y[i]);
}

void launch_activate(const Conv2dProblem& conv, float* y) {
  if (conv.activation == Activation::none) return;
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(conv2d_im2col_gemm_activate, {blocks_for(count, kThreads, kMaxBlocks), kThreads},
         conv.activation, count, y);
}

Im2colProblem columns_of_one_image(Conv2dProblem conv) {
  conv.N = 1;
  return columns_of(conv);
}

/// True if the column matrix of an image equals the image.
bool columns_are_x(const Conv2dProblem& conv) {
  const Padding& pad = conv.pad;
  return conv.R == 1 && conv.S == 1 && conv.stride.h == 1 && conv.stride.w == 1 &&  //
         pad.top == 0 && pad.bottom == 0 && pad.left == 0 && pad.right == 0;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  const Im2colProblem columns = columns_of_one_image(conv);
  for (const std::int64_t extent : {columns.columns(), columns.rows() / conv.groups}) {
    if (extent > std::numeric_limits<int>::max()) {
      return text("a matrix of ", columns.rows() / conv.groups, " x ", columns.columns(),
                  ": the product takes extents below 2^31");
    }
  }
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  if (columns_are_x(conv)) return 0;
  const Im2colProblem columns = columns_of_one_image(conv);
  return static_cast<std::size_t>(
      checked_product({columns.rows(), columns.columns(), sizeof(float)}, "bytes of columns"));
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  float* y = arrays.y;
  float* col = context.workspace_as<float>();

  const Im2colProblem columns = columns_of_one_image(conv);
  const std::int64_t windows = columns.columns();                // P * Q
  const std::int64_t group_rows = columns.rows() / conv.groups;  // C/G * R * S
  const std::int64_t group_k = conv.K / conv.groups;
  const std::int64_t x_size = columns.C * columns.channel_size(), y_size = conv.K * windows;

  BatchedGemm product{.M = static_cast<int>(group_k),
                      .N = static_cast<int>(windows),
                      .K = static_cast<int>(group_rows),
                      .groups = conv.groups,
                      .a = {.data = arrays.weights,
                            .row_stride = group_rows,
                            .column_stride = 1,
                            .group_stride = group_k * group_rows},
                      .b = {.data = col,
                            .row_stride = windows,
                            .column_stride = 1,
                            .group_stride = group_rows * windows},
                      .c = {.data = y,
                            .row_stride = windows,
                            .column_stride = 1,
                            .group_stride = group_k * windows},
                      .bias = arrays.bias};
  if (columns_are_x(conv)) {
    product.images = conv.N;
    product.b.data = x;
    product.b.image_stride = x_size;
    product.c.image_stride = y_size;
    gemm::launch_gemm(product);
    launch_activate(conv, y);
    return;
  }
  for (std::int64_t n = 0; n < conv.N; ++n) {
    im2col::im2col(columns, {x + n * x_size, col});
    product.c.data = y + n * y_size;
    gemm::launch_gemm(product);  // same stream: the next image's im2col waits for it
  }
  launch_activate(conv, y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(columns_are_x(conv) ? "x as its own columns, all images at once"
                                  : "columns, an image at a time",
              conv.activation == Activation::none ? "" : ", then the activation");
}

}  // namespace

extern const Implementation<Conv2dArrays> im2col_gemm = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d
