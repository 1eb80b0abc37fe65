#include "core/same_padding.hpp"

#include <algorithm>
#include <limits>

#include "core/arithmetic.hpp"
#include "core/error.hpp"

namespace convladder {
namespace {

/// Sets pad_before and pad_after along one axis; messages call it `name`.
void pad_as_same(WindowAxis& axis, const char* name) {
  axis.pad_before = axis.pad_after = 0;
  if (axis.size < 1 || axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1) return;
  const std::int64_t outputs = ceil_div(std::int64_t{axis.size}, std::int64_t{axis.stride});
  const std::int64_t read = (outputs - 1) * axis.stride + window_extent(axis.kernel, axis.dilation);
  const std::int64_t zeros = std::max<std::int64_t>(read - axis.size, 0);
  require(zeros <= std::numeric_limits<int>::max(), "pad", "same",
          text("needs ", zeros, " zeros along the ", name, ", which must be less than 2^31"));
  axis.pad_before = static_cast<int>(zeros / 2);
  axis.pad_after = static_cast<int>(zeros - zeros / 2);
}

}  // namespace

Padding same_padding(const Conv2dProblem& p) {
  WindowAxis height = {.size = p.H, .kernel = p.R, .stride = p.stride.h, .dilation = p.dilation.h};
  WindowAxis width = {.size = p.W, .kernel = p.S, .stride = p.stride.w, .dilation = p.dilation.w};
  pad_as_same(height, "height");
  pad_as_same(width, "width");
  return {height.pad_before, height.pad_after, width.pad_before, width.pad_after};
}

Im2colProblem with_same_padding(Im2colProblem p) {
  pad_as_same(p.depth, "depth");
  pad_as_same(p.height, "height");
  pad_as_same(p.width, "width");
  return p;
}

}  // namespace convladder
