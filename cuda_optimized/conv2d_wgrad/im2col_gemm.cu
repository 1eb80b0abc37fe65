/// @file im2col_gemm.cu
/// @brief im2col and GEMM: a tiled GEMM computes dw, and a block reduction computes db.
///
/// - Before: cuda_naive/conv2d_wgrad/gather.cu
/// - The kernels: cuda_optimized/im2col/im2col_batched.cu,
///
/// **The idea.** The sum over outputs is a GEMM, dw = dy * col^T, for each group; the GEMMs of the
/// images run one after the other and add to the same dw. A tile of the GEMM reuses each dy and
/// each x that it loads.
///
///            P*Q              C/G*R*S             C/G*R*S
///     K/G [  dy  ]   x  P*Q [  col^T  ]  =  K/G [   dw   ]
///
/// No atomics: the images follow one another in the same stream, so every sum has a fixed order,
/// and the same input gives the same bits. One block per channel computes db: its threads add
/// strided parts, coalesced, and then pairs of parts in shared memory.
///
///     step 4:  0+4 1+5 2+6 3+7      step 2:  0+2 1+3      step 1:  0+1
///
/// **Expect.** One launch of im2col for as many images as the workspace holds, one GEMM per image.
/// dw is small and K is large: B4's dw has 36 tiles of 32 x 32 for 132 SMs.
/// @expect lanes_per_output.workspace.store 144 * 256 / 9280 = 3.972, the columns are written once
/// @expect loads_per_output.workspace 2 * 144 * 256 / 9280 = 7.945, and read for each 32 filters
/// @expect launches 3, with db's
/// **Costs.** Most of the GPU is idle unless K and C * R * S are large, because there is no
/// split-K. Workspace for columns, as many images as fit kColumnBudget. Not supported: other
/// layouts than NCHW, other types than float32, 2^31 and more rows or columns.
/// **Try.** Write the columns of all images into one matrix, and compute one GEMM. How many
/// launches are left, and how large is the workspace?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/batched_gemm.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/tiled_batched.cuh"
#include "cuda_optimized/im2col/im2col_batched.cuh"
#include "cuda_optimized/im2col/shared/column_budget.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kThreads = 256;  ///< A power of two, for the pairs.

/// dy [N][K][P][Q], db [K]. Grid K, block kThreads.
__global__ void conv2d_wgrad_im2col_gemm_bias_gradient(Conv2dProblem conv, const float* dy,
                                                       float* db) {
  __shared__ float part[kThreads];
  const int k = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;

  float sum = 0.0f;
  for (std::int64_t n = 0; n < conv.N; ++n) {
    const float* channel = dy + (n * conv.K + k) * plane;
    for (std::int64_t i = thread; i < plane; i += kThreads) sum += channel[i];
  }
  part[thread] = sum;
  for (int step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();  // between the writes of the last step and the reads of this one
    if (thread < step) part[thread] += part[thread + step];
  }
  if (thread == 0) db[k] = part[0];  // no barrier: this very thread wrote it
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return columns_too_large(conv);
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][R][S], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* dy = arrays.dy;
  float* dw = arrays.dw;
  float* col = context.workspace_as<float>();

  const Im2colProblem one_image = columns_of_images(conv, 1);
  const std::int64_t windows = one_image.columns();                // P * Q
  const std::int64_t group_rows = one_image.rows() / conv.groups;  // C/G * R * S
  const std::int64_t group_k = conv.K / conv.groups;

  // Every image adds to dw. For N = 0 the zeros are the answer.
  check(cudaMemsetAsync(dw, 0, static_cast<std::size_t>(conv.K * group_rows) * sizeof(float),
                        current_stream()));
  const int step = images_at_a_time(conv);
  for (std::int64_t n0 = 0; n0 < conv.N; n0 += step) {
    const int images = static_cast<int>(std::min<std::int64_t>(step, conv.N - n0));
    im2col::im2col_batched(columns_of_images(conv, images),
                           {x + n0 * conv.C * one_image.channel_size(), col});
    for (int i = 0; i < images; ++i) {
      gemm::launch_gemm_tiled({.M = static_cast<int>(group_k),
                               .N = static_cast<int>(group_rows),
                               .K = static_cast<int>(windows),
                               .groups = conv.groups,
                               .a = {.data = dy + (n0 + i) * conv.K * windows,
                                     .row_stride = windows,
                                     .column_stride = 1,
                                     .group_stride = group_k * windows},
                               .b = {.data = col + i * one_image.rows() * windows,  // transposed
                                     .row_stride = 1,
                                     .column_stride = windows,
                                     .group_stride = group_rows * windows},
                               .c = {.data = dw,
                                     .row_stride = group_rows,
                                     .column_stride = 1,
                                     .group_stride = group_k * group_rows},
                               .accumulate = true});
    }
  }
  launch(conv2d_wgrad_im2col_gemm_bias_gradient, {static_cast<unsigned>(conv.K), kThreads}, conv,
         dy, arrays.db);
}

std::string choice_in_words(const Conv2dProblem& conv) { return images_in_words(conv); }

}  // namespace

extern const Implementation<Conv2dWgradArrays> im2col_gemm = {
    .supports = supports,
    .workspace_bytes = column_workspace,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
