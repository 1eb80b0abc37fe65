/// @file gemm_col2im.cpp
/// @brief GEMM and col2im: the transpose of im2col and GEMM.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/conv2d_dgrad/gemm_col2im.cu
///
/// **The idea.** The forward pass is y = w * im2col(x), a composition of two linear maps. The
/// gradient applies their transposes in reverse order: dx = col2im(w^T * dy). All multiplications
/// are in the GEMM, for which fast libraries exist (here Eigen); col2im only adds.
///
///               K/G                P*Q                    P*Q
///     C/G*R*S [ w^T ]   x   K/G [  dy  ]   =   C/G*R*S [  col  ]   -- col2im -->  dx
///
/// Each group is a separate GEMM with its own rows of col.
///
/// **Expect.** Many times the speed of direct.cpp: the GEMM uses vector instructions and the
/// caches.
/// **Costs.** Workspace for the columns of one image: C * R * S * P * Q floats.
#include "core/arithmetic.hpp"
#include "core/conv2d_gradients.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/col2im/col2im.hpp"
#include "cpu_reference/gemm/product.hpp"

namespace convladder::cpu_reference::conv2d_dgrad {
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

/// dy [N][K][P][Q], weights [K][C/groups][R][S], dx [N][C][H][W].
void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const float* dy = arrays.dy;
  const float* weights = arrays.weights;
  float* dx = arrays.dx;
  float* col = context.workspace_as<float>();

  const Im2colProblem columns = columns_of_one_image(conv);
  const std::int64_t windows = columns.columns();                // P * Q
  const std::int64_t group_rows = columns.rows() / conv.groups;  // C/G * R * S
  const std::int64_t group_k = conv.K / conv.groups;
  const std::int64_t image_size = columns.C * columns.channel_size();

  for (std::int64_t n = 0; n < conv.N; ++n) {
    for (std::int64_t g = 0; g < conv.groups; ++g) {
      gemm::multiply(group_rows, windows, group_k,
                     gemm::transpose(weights + g * group_k * group_rows),
                     {dy + (n * conv.K + g * group_k) * windows}, col + g * group_rows * windows);
    }
    col2im::col2im(columns, {col, dx + n * image_size});
  }
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> gemm_col2im = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d_dgrad
