#include "core/im2col_problem.hpp"

#include <array>
#include <limits>

#include "core/arithmetic.hpp"
#include "core/array.hpp"
#include "core/output_extent.hpp"

namespace convladder {
namespace {

constexpr std::array<const char*, 3> kAxisNames = {"depth", "height", "width"};

std::array<WindowAxis, 3> axes_of(const Im2colProblem& p) { return {p.depth, p.height, p.width}; }

/// The extents of the problem's own axes: `rank` values of the member.
template <class T>
std::vector<T> own_axes(const Im2colProblem& p, T WindowAxis::*member) {
  std::vector<T> values;
  const auto axes = axes_of(p);
  for (std::size_t axis = 3 - static_cast<std::size_t>(p.rank); axis < 3; ++axis) {
    values.push_back(axes[axis].*member);
  }
  return values;
}

WindowAxis validated(WindowAxis axis, const std::string& name) {
  require(axis.size >= 1, name, axis.size, "must be at least 1");
  require(axis.kernel >= 1, "kernel (" + name + ")", axis.kernel, "must be at least 1");
  require(axis.stride >= 1, "stride (" + name + ")", axis.stride, "must be at least 1");
  require(axis.dilation >= 1, "dilation (" + name + ")", axis.dilation, "must be at least 1");
  require(axis.pad_before >= 0, "pad (" + name + ")", axis.pad_before, "must be at least 0");
  require(axis.pad_after >= 0, "pad (" + name + ")", axis.pad_after, "must be at least 0");
  const std::int64_t padded = std::int64_t{axis.size} + axis.pad_before + axis.pad_after;
  require(padded <= std::numeric_limits<int>::max(), "pad (" + name + ")",
          text(axis.pad_before, ",", axis.pad_after),
          text("padding and the size ", axis.size, " together must be less than 2^31"));
  const std::int64_t windows = output_extent(axis.size, axis.pad_before, axis.pad_after,
                                             axis.kernel, axis.stride, axis.dilation);
  require(
      windows >= 1, "windows (" + name + ")", windows,
      text("the kernel does not fit: ", padded, " elements with padding are fewer than its extent ",
           window_extent(axis.kernel, axis.dilation)));
  axis.out = static_cast<int>(windows);
  return axis;
}

ArraySpec x_spec(const Im2colProblem& p) {
  Shape shape = {p.N, p.C};
  for (const int size : own_axes(p, &WindowAxis::size)) shape.push_back(size);
  ArraySpec spec = {
      "x", std::string("nc") + std::string("dhw").substr(3 - static_cast<std::size_t>(p.rank)),
      shape, p.dtype};
  if (p.layout == Layout::nhwc) {
    spec.order = {shape, {0}};
    for (int axis = 0; axis < p.rank; ++axis) spec.order.axes.push_back(2 + axis);
    spec.order.axes.push_back(1);
  }
  return spec;
}

ArraySpec col_spec(const Im2colProblem& p) {
  // The letters of the axes: image, row (c and tap), window.
  ArraySpec spec = {"col", "nrw", {p.N, p.rows(), p.columns()}, p.dtype};
  if (p.layout == Layout::nhwc) {
    spec.order = {{p.N, p.C, p.kernel_volume(), p.columns()}, {0, 3, 2, 1}};
  }
  return spec;
}

Signature signature_of(ArraySpec input, ArraySpec output, Request request) {
  Signature signature{{std::move(input)}, {std::move(output)}};
  ArraySpec& result = signature.outputs.front();
  if (request != Request::write) {
    result.initial = "into";
    signature.inputs.push_back({.name = "into",
                                .axes = result.axes,
                                .shape = result.shape,
                                .dtype = result.dtype,
                                .order = result.order});
  }
  return signature;
}

/// "3x5" or, where all are alike, "3".
std::string short_text(const std::vector<int>& values) {
  for (const int value : values) {
    if (value != values.front()) return joined(values, ",");
  }
  return text(values.front());
}

}  // namespace

Im2colProblem validated(Im2colProblem p) {
  require(p.N >= 0, "n", p.N, "must be at least 0");
  require(p.C >= 1, "c", p.C, "must be at least 1");
  require(p.rank >= 1 && p.rank <= 3, "rank", p.rank, "must be 1, 2 or 3");
  p.depth = validated(p.depth, kAxisNames[0]);
  p.height = validated(p.height, kAxisNames[1]);
  p.width = validated(p.width, kAxisNames[2]);
  checked_product({p.C, p.depth.kernel, p.height.kernel, p.width.kernel},
                  "rows of a column matrix");
  checked_product({p.depth.out, p.height.out, p.width.out}, "windows");
  element_count(x_spec(p).shape);
  element_count(col_spec(p).shape);
  return p;
}

Im2colProblem columns_of(const Conv2dProblem& p) {
  return validated(
      Im2colProblem{.N = p.N,
                    .C = p.C,
                    .rank = 2,
                    .height = {p.H, p.R, p.pad.top, p.pad.bottom, p.stride.h, p.dilation.h},
                    .width = {p.W, p.S, p.pad.left, p.pad.right, p.stride.w, p.dilation.w},
                    .layout = p.layout,
                    .dtype = p.dtype});
}

std::string describe(const Im2colProblem& p) {
  std::string line =
      text(p.rank, "-D, ", p.N, "x", p.C, "x", joined(own_axes(p, &WindowAxis::size), "x"),
           ", kernel ", joined(own_axes(p, &WindowAxis::kernel), "x"));
  const auto before = own_axes(p, &WindowAxis::pad_before);
  const auto after = own_axes(p, &WindowAxis::pad_after);
  const std::vector<int> no_pad(before.size(), 0), unit(before.size(), 1);
  if (before != after) {
    line += text(", pad ", joined(before, ","), " before and ", joined(after, ","), " after");
  } else if (before != no_pad) {
    line += ", pad " + short_text(before);
  }
  const auto stride = own_axes(p, &WindowAxis::stride);
  const auto dilation = own_axes(p, &WindowAxis::dilation);
  if (stride != unit) line += ", stride " + short_text(stride);
  if (dilation != unit) line += ", dilation " + short_text(dilation);
  if (p.request != Request::write) line += text(", ", name_of(p.request));
  if (p.layout != Layout::nchw) line += text(", ", name_of(p.layout));
  return line;
}

Signature im2col_signature(const Im2colProblem& p) {
  return signature_of(x_spec(p), col_spec(p), p.request);
}

Signature col2im_signature(const Im2colProblem& p) {
  return signature_of(col_spec(p), x_spec(p), p.request);
}

}  // namespace convladder
