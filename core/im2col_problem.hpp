/// @file im2col_problem.hpp
/// @brief The parameters of im2col and of its adjoint col2im, in one, two or three dimensions.
#pragma once

#include <cstdint>
#include <string>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"

namespace convladder {

/// The treatment of an output's old values (MXNet's OpReqType: kWriteTo, kAddTo, kNullOp).
enum class Request {
  write,  ///< overwrite it, without reading it
  add,    ///< add to every element exactly once, also where the added value is zero
  none    ///< leave it unchanged
};

/// As on the command line: "write".
constexpr const char* name_of(Request request) {
  return request == Request::write ? "write" : request == Request::add ? "add" : "none";
}

/// A window that moves along one axis.
struct WindowAxis {
  int size = 1;                       ///< input extent
  int kernel = 1;                     ///< taps
  int pad_before = 0, pad_after = 0;  ///< zeros at both ends
  int stride = 1;                     ///< distance between neighbouring windows
  int dilation = 1;                   ///< 1 = none
  int out = 1;                        ///< number of windows, set by validated()
};

/// im2col: col[n, (c * kernel volume) + tap, window] = x[n, c, position of that tap of that
/// window], zero in the padding. col2im is its adjoint: x[n, c, i] = sum of all col elements that
/// read x[n, c, i].
///
/// With the layout nhwc, channels are innermost in memory, whatever the number of axes: x is
/// [N][D][H][W][C], and each window is a row of col, [N][windows][taps][C].
///
/// Build it with validated(). With fewer than three dimensions, the leading axes are the default
/// WindowAxis, which has no effect, so one kernel supports all ranks. Trivially copyable.
struct Im2colProblem {
  int N = 1;                                       ///< images
  int C = 1;                                       ///< channels
  int rank = 2;                                    ///< 1, 2 or 3
  WindowAxis depth = {}, height = {}, width = {};  ///< the axes, outermost first
  Request request = Request::write;                ///< treatment of the output's old values
  Layout layout = Layout::nchw;                    ///< of x and of the columns
  DType dtype = DType::f32;                        ///< of all arrays

  /// Rows of a column matrix: C * taps of the kernel.
  HOST_DEVICE constexpr std::int64_t rows() const { return C * kernel_volume(); }
  /// Columns of a column matrix: the number of windows.
  HOST_DEVICE constexpr std::int64_t columns() const {
    return static_cast<std::int64_t>(depth.out) * height.out * width.out;
  }
  /// Taps of the kernel.
  HOST_DEVICE constexpr std::int64_t kernel_volume() const {
    return static_cast<std::int64_t>(depth.kernel) * height.kernel * width.kernel;
  }
  /// Elements of one channel of one image.
  HOST_DEVICE constexpr std::int64_t channel_size() const {
    return static_cast<std::int64_t>(depth.size) * height.size * width.size;
  }
};

/// The same problem with its output extents. @throws BadInput as validated(Conv2dProblem).
Im2colProblem validated(Im2colProblem problem);

/// The im2col of a convolution's input.
Im2colProblem columns_of(const Conv2dProblem& problem);

/// One line: "2-D, 3x5x30x20, kernel 3x3, pad 1, stride 2".
std::string describe(const Im2colProblem& problem);

/// The arrays of im2col: x (and `into`) to col [N][C * kernel volume][windows]; nhwc is an order in
/// memory and does not change these shapes.
Signature im2col_signature(const Im2colProblem& problem);
/// The arrays of col2im: col (and `into`) to x.
Signature col2im_signature(const Im2colProblem& problem);

/// The arrays of im2col at the place where a rung runs.
struct Im2colArrays {
  using Problem = Im2colProblem;  ///< The problem type of these arrays.
  const float* x = nullptr;       ///< [N][C] and the axes
  float* col =
      nullptr;  ///< [N][C * kernel volume][windows]; holds the old values for a request to add
};

/// The arrays of col2im.
struct Col2imArrays {
  using Problem = Im2colProblem;  ///< The problem type of these arrays.
  const float* col = nullptr;     ///< [N][C * kernel volume][windows]
  float* x = nullptr;  ///< [N][C] and the axes; holds the old values for a request to add
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const Im2colProblem& problem, const Im2colArrays& arrays);
/// The same.
void require_complete(const Im2colProblem& problem, const Col2imArrays& arrays);

}  // namespace convladder
