/// @file im2col.cpp
/// @brief Definition of im2col: each window becomes a column.
///
/// - After: cuda_naive/im2col/im2col.cu, im2row.cpp
/// - Its adjoint: cpu_reference/col2im/col2im.cpp (the same loops, with source and target
///   exchanged)
///
/// **The idea.** Each window of the input is copied into a column of a matrix, so that a
/// convolution becomes one GEMM, weights times columns (Chellapilla, Puri and Simard, "High
/// performance convolutional neural networks for document processing", 2006). A row of the matrix
/// holds the elements that one tap reads as the window moves. Taps in the padding are zeros.
///
///     x (1 channel, 3 x 3)    kernel 2 x 2       col (4 taps x 4 windows)
///         a b c                                  tap (0,0):  a b d e
///         d e f               4 windows:         tap (0,1):  b c e f
///         g h i               abde bcef          tap (1,0):  d e g h
///                             degh efhi          tap (1,1):  e f h i
///
/// Inputs have up to three axes (d, h, w). With fewer axes, the leading ones have size 1 and one
/// tap, so the same loops serve all ranks.
///
/// **Expect.** Each input is copied up to R * S times: col is up to that much larger than x.
#include "cpu_reference/im2col/im2col.hpp"

#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::im2col {
namespace {

/// The position along the axis that this tap of this window reads; -1 in the padding.
int position(const WindowAxis& axis, int window, int tap) {
  const int at = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return at >= 0 && at < axis.size ? at : -1;
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const Im2colProblem& problem, const Im2colArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const Index4 row_at{depth.kernel, height.kernel, width.kernel};
  const Index4 pixel_at{depth.size, height.size, width.size};

  for (int n = 0; n < problem.N; ++n) {
    const float* image = arrays.x + std::int64_t{n} * problem.C * problem.channel_size();
    float* matrix = arrays.col + n * problem.rows() * problem.columns();
    for (int c = 0; c < problem.C; ++c) {
      for (int t = 0; t < depth.kernel; ++t) {
        for (int r = 0; r < height.kernel; ++r) {
          for (int s = 0; s < width.kernel; ++s) {
            float* to = matrix + row_at(c, t, r, s) * problem.columns();
            for (int o = 0; o < depth.out; ++o) {
              const int d = position(depth, o, t);
              for (int p = 0; p < height.out; ++p) {
                const int h = position(height, p, r);
                for (int q = 0; q < width.out; ++q, ++to) {
                  const int w = position(width, q, s);
                  const bool inside = d >= 0 && h >= 0 && w >= 0;
                  const float value = inside ? image[pixel_at(c, d, h, w)] : 0.0f;
                  *to = problem.request == Request::add ? *to + value : value;
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Im2colArrays> im2col = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::im2col
