#include "core/conv2d_transpose.hpp"

#include <algorithm>
#include <limits>

#include "core/arithmetic.hpp"
#include "core/array.hpp"

namespace convladder {
namespace {

/// One axis of a transposed convolution.
struct Axis {
  const char* name;
  int size, taps, stride, dilation, more;  ///< additional padding of the output
  int before, after;                       ///< rows or columns that are removed

  /// The extent of y. Sets the removed rows or columns as the padding of its gradient's problem.
  int set_output(bool same) {
    const std::int64_t window = window_extent(taps, dilation);
    require(more >= 0 && more < std::max(stride, dilation), "out-padding", more,
            text("must be at least 0 and less than the larger of stride and dilation, ",
                 std::max(stride, dilation)));
    std::int64_t extent = (std::int64_t{size} - 1) * stride + window;
    if (same) {
      require(more == 0, "out-padding", more, "pad same leaves no choice of the output extent");
      const std::int64_t cut = std::max<std::int64_t>(window - stride, 0);
      require(cut <= std::numeric_limits<int>::max(), "pad", "same",
              text("cuts ", cut, " off along ", name, ", which must be less than 2^31"));
      before = static_cast<int>(cut / 2);
      after = static_cast<int>(cut - cut / 2);
      extent = std::int64_t{size} * stride;
    } else {
      extent += more - std::int64_t{before} - after;
    }
    require(extent >= 1, "pad", text(before, ",", after),
            text("leaves no outputs along ", name, ": extent ", extent));
    require(extent <= std::numeric_limits<int>::max(), name, size,
            text("the output extent along ", name, " must be less than 2^31, it is ", extent));
    // As the input of a convolution, y has exactly one window per pixel of x: `after` is reduced by
    // the windows that would begin in the output's padding.
    const int surplus = more / stride * stride;
    require(after >= surplus, "out-padding", more,
            text("not less than the stride ", stride, " along ", name,
                 ": then the padding at its end must be at least ", surplus, ", it is ", after));
    after -= surplus;
    return static_cast<int>(extent);
  }
};

}  // namespace

Conv2dProblem gradient_of(const Conv2dTranspose& t) {
  require(t.N >= 0, "n", t.N, "must be at least 0");
  for (const auto& [name, value] : {std::pair{"c", t.C},
                                    {"h", t.H},
                                    {"w", t.W},
                                    {"k", t.K},
                                    {"r", t.R},
                                    {"s", t.S},
                                    {"stride", t.stride.h},
                                    {"stride", t.stride.w},
                                    {"dilation", t.dilation.h},
                                    {"dilation", t.dilation.w},
                                    {"groups", t.groups}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  for (const int pad : {t.pad.top, t.pad.bottom, t.pad.left, t.pad.right}) {
    require(pad >= 0, "pad", pad, "must be at least 0");
  }
  require(t.C % t.groups == 0, "groups", t.groups, text("must divide c = ", t.C));
  require(t.K % t.groups == 0, "groups", t.groups, text("must divide k = ", t.K));
  Axis height{.name = "h",
              .size = t.H,
              .taps = t.R,
              .stride = t.stride.h,
              .dilation = t.dilation.h,
              .more = t.out_padding.h,
              .before = t.pad.top,
              .after = t.pad.bottom};
  Axis width{.name = "w",
             .size = t.W,
             .taps = t.S,
             .stride = t.stride.w,
             .dilation = t.dilation.w,
             .more = t.out_padding.w,
             .before = t.pad.left,
             .after = t.pad.right};
  const int H = height.set_output(t.same), W = width.set_output(t.same);
  return validated(Conv2dProblem{.N = t.N,
                                 .C = t.K,
                                 .H = H,
                                 .W = W,
                                 .K = t.C,
                                 .R = t.R,
                                 .S = t.S,
                                 .pad = {height.before, height.after, width.before, width.after},
                                 .stride = t.stride,
                                 .dilation = t.dilation,
                                 .groups = t.groups,
                                 .bias = t.bias,
                                 .layout = t.layout,
                                 .dtype = t.dtype,
                                 .precision = t.precision});
}

std::string describe_transpose(const Conv2dProblem& p) {
  // describe() of the gradient's problem gives the parameters of the filters.
  const std::string gradient = describe(p);
  const std::size_t more = gradient.find(", ", gradient.find(", ") + 1);
  return text(p.N, "x", p.K, "x", p.P, "x", p.Q, " to ", p.N, "x", p.C, "x", p.H, "x", p.W,
              ", filters ", p.R, "x", p.S, more == std::string::npos ? "" : gradient.substr(more));
}

Signature conv2d_transpose_signature(const Conv2dProblem& p) {
  Signature signature = conv2d_dgrad_signature(p);
  const auto rename = [](ArraySpec& spec, const char* name, const char* axes) {
    spec.name = name;
    spec.axes = axes;
  };
  rename(signature.inputs[0], "x", "nchw");
  rename(signature.inputs[1], "weights", "ckrs");
  rename(signature.outputs[0], "y", "nkhw");
  if (p.bias) signature.inputs.push_back({"bias", "k", {p.C}, DType::f32});
  return signature;
}

}  // namespace convladder
