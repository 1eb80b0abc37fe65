#include <limits>

#include "core/arithmetic.hpp"
#include "core/array.hpp"
#include "core/conv2d_gradients.hpp"
#include "core/output_extent.hpp"
#include "core/tile_map_problem.hpp"
#include "core/type_names.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<int>::max();

/// The output extent along one axis, or BadInput that names the sizes. `axis`: "h" or "w".
int checked_output(const std::string& output, const std::string& axis, std::int64_t size,
                   std::int64_t before, std::int64_t after, std::int64_t taps, std::int64_t stride,
                   std::int64_t dilation) {
  const std::int64_t extent = output_extent(size, before, after, taps, stride, dilation);
  if (extent >= 1) return static_cast<int>(extent);
  require(false, output, extent,
          text("the filter does not fit: ", axis, " ", size, " + padding ", before + after,
               " is less than its extent ", window_extent(taps, dilation), " (", taps,
               " taps, dilation ", dilation, ")"));
  return 0;
}

/// Kernels compute coordinates such as p * stride + r * dilation in 32 bits.
void require_int(const char* what, std::int64_t size, std::int64_t before, std::int64_t after) {
  if (size + before + after <= kMaxExtent) return;
  require(false, "pad", text(before, ",", after),
          text("padding and the ", what, " ", size, " together must be less than 2^31"));
}

ArraySpec laid_out(const Conv2dProblem& p, ArraySpec spec) {
  if (p.layout == Layout::nhwc) spec.order = {spec.shape, {0, 2, 3, 1}};
  return spec;
}
ArraySpec x_spec(const Conv2dProblem& p, const std::string& name) {
  return laid_out(p, {name, "nchw", {p.N, p.C, p.H, p.W}, p.dtype});
}
ArraySpec y_spec(const Conv2dProblem& p, const std::string& name) {
  return laid_out(p, {name, "nkpq", {p.N, p.K, p.P, p.Q}, p.dtype});
}
ArraySpec weights_spec(const Conv2dProblem& p, const std::string& name) {
  return laid_out(p, {name, "kcrs", {p.K, p.C / p.groups, p.R, p.S}, p.dtype});
}

std::string pair_text(int h, int w) { return h == w ? text(h) : text(h, ",", w); }

}  // namespace

Conv2dProblem validated(Conv2dProblem p) {
  require(p.N >= 0, "n", p.N, "must be at least 0");
  for (const auto& [name, value] : {std::pair{"c", p.C},
                                    {"h", p.H},
                                    {"w", p.W},
                                    {"k", p.K},
                                    {"r", p.R},
                                    {"s", p.S},
                                    {"stride", p.stride.h},
                                    {"stride", p.stride.w},
                                    {"dilation", p.dilation.h},
                                    {"dilation", p.dilation.w},
                                    {"groups", p.groups}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  for (const int pad : {p.pad.top, p.pad.bottom, p.pad.left, p.pad.right}) {
    require(pad >= 0, "pad", pad, "must be at least 0");
  }
  require(p.C % p.groups == 0, "groups", p.groups, text("must divide c = ", p.C));
  require(p.K % p.groups == 0, "groups", p.groups, text("must divide k = ", p.K));
  require(p.dtype != DType::i32, "dtype", name_of(p.dtype), "must be fp32, tf32, fp16 or bf16");
  require_int("height", p.H, p.pad.top, p.pad.bottom);
  require_int("width", p.W, p.pad.left, p.pad.right);
  p.P = checked_output("p", "h", p.H, p.pad.top, p.pad.bottom, p.R, p.stride.h, p.dilation.h);
  p.Q = checked_output("q", "w", p.W, p.pad.left, p.pad.right, p.S, p.stride.w, p.dilation.w);
  for (const auto& spec : {x_spec(p, "x"), y_spec(p, "y"), weights_spec(p, "weights")}) {
    element_count(spec.shape);
  }
  return p;
}

std::string describe(const Conv2dProblem& p) {
  std::string line = text(p.N, "x", p.C, "x", p.H, "x", p.W, ", ", p.K,
                          p.K == 1 ? " filter " : " filters ", p.R, "x", p.S);
  const Padding& pad = p.pad;
  if (pad.top == pad.bottom && pad.left == pad.right) {
    if (pad.top != 0 || pad.left != 0) line += ", pad " + pair_text(pad.top, pad.left);
  } else {
    line += text(", pad ", pad.top, ",", pad.bottom, ",", pad.left, ",", pad.right);
  }
  if (p.stride.h != 1 || p.stride.w != 1) line += ", stride " + pair_text(p.stride.h, p.stride.w);
  if (p.dilation.h != 1 || p.dilation.w != 1) {
    line += ", dilation " + pair_text(p.dilation.h, p.dilation.w);
  }
  if (p.groups != 1) line += text(", groups ", p.groups);
  if (p.bias) line += ", bias";
  if (p.activation != Activation::none) line += text(", ", name_of(p.activation));
  if (p.layout != Layout::nchw) line += text(", ", name_of(p.layout));
  if (p.map != TileMap::row_major) line += text(", map ", name_of(p.map));
  if (p.dtype != DType::f32 || p.precision != Precision::fp32)
    line += text(", ", dtype_name(p.dtype, p.precision));
  return line;
}

Signature conv2d_signature(const Conv2dProblem& p) {
  Signature signature{{x_spec(p, "x"), weights_spec(p, "weights")}, {y_spec(p, "y")}};
  if (p.bias) signature.inputs.push_back({"bias", "k", {p.K}, DType::f32});
  return signature;
}

Signature conv2d_dgrad_signature(const Conv2dProblem& p) {
  return {{y_spec(p, "dy"), weights_spec(p, "weights")}, {x_spec(p, "dx")}};
}

Signature conv2d_wgrad_signature(const Conv2dProblem& p) {
  ArraySpec dw = weights_spec(p, "dw");
  dw.dtype = DType::f32;
  return {{x_spec(p, "x"), y_spec(p, "dy")}, {dw, {"db", "k", {p.K}, DType::f32}}};
}

}  // namespace convladder
