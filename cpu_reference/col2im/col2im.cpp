/// @file col2im.cpp
/// @brief col2im: the definition.
///
/// - After: cuda_naive/col2im/col2im.cu
/// - Its adjoint: cpu_reference/im2col/im2col.cpp (the same loops, with source and target
///   exchanged)
///
/// **The idea.** The loops are those of im2col, but each column element is added to the pixel that
/// im2col would have read: a *scatter*. Elements in the padding are dropped. As a matrix, col2im is
/// the transpose of im2col, not its inverse: a pixel that several windows cover receives several
/// terms.
///
///     col (4 taps x 4 windows)     x (3 x 3), kernel 2 x 2
///         tap (0,0):  a b c d          a      b+e        f
///         tap (0,1):  e f g h          c+i    d+g+j+m    h+n
///         tap (1,0):  i j k l          k      l+o        p
///         tap (1,1):  m n o p
///
/// **Expect.** As many additions as col has elements. A pixel outside of all windows (stride larger
/// than the kernel, or a remainder at the end) receives none: it becomes 0 or, with `add`, keeps
/// its value.
#include "cpu_reference/col2im/col2im.hpp"

#include <algorithm>

#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::col2im {
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

void run(const Im2colProblem& problem, const Col2imArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const Index4 row_at{depth.kernel, height.kernel, width.kernel};
  const Index4 pixel_at{depth.size, height.size, width.size};

  // The sums start from zero or, with `add`, from the old values.
  if (problem.request == Request::write) {
    std::fill_n(arrays.x, std::int64_t{problem.N} * problem.C * problem.channel_size(), 0.0f);
  }
  for (int n = 0; n < problem.N; ++n) {
    const float* matrix = arrays.col + n * problem.rows() * problem.columns();
    float* image = arrays.x + std::int64_t{n} * problem.C * problem.channel_size();
    for (int c = 0; c < problem.C; ++c) {
      for (int t = 0; t < depth.kernel; ++t) {
        for (int r = 0; r < height.kernel; ++r) {
          for (int s = 0; s < width.kernel; ++s) {
            const float* from = matrix + row_at(c, t, r, s) * problem.columns();
            for (int o = 0; o < depth.out; ++o) {
              const int d = position(depth, o, t);
              for (int p = 0; p < height.out; ++p) {
                const int h = position(height, p, r);
                for (int q = 0; q < width.out; ++q, ++from) {
                  const int w = position(width, q, s);
                  const bool inside = d >= 0 && h >= 0 && w >= 0;
                  if (inside) image[pixel_at(c, d, h, w)] += *from;
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

extern const Implementation<Col2imArrays> col2im = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::col2im
