#include "check/problem_numbers.hpp"

#include "core/error.hpp"

namespace convladder::check {
namespace {

/// Pairs of window and tap along an axis that read an element of it.
std::int64_t inside(const WindowAxis& axis) {
  std::int64_t count = 0;
  for (std::int64_t i = -axis.pad_before; i < axis.size + axis.pad_after; ++i) {
    if (i < 0 || i >= axis.size) continue;
    for (int tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t begin = i + axis.pad_before - std::int64_t{tap} * axis.dilation;
      if (begin >= 0 && begin % axis.stride == 0 && begin / axis.stride < axis.out) ++count;
    }
  }
  return count;
}

}  // namespace

std::optional<double> number_of(const std::string& name, const Problem& problem) {
  if (!name.starts_with("problem.")) return {};
  const std::string what = name.substr(name.find('.') + 1);
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    if (what == "p") return conv->P;
    if (what == "q") return conv->Q;
  } else if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
    const std::int64_t elements = std::int64_t{columns->N} * columns->rows() * columns->columns();
    if (what == "bytes_of_col") return static_cast<double>(elements) * sizeof(float);
    if (what == "taps_in_the_padding") {
      const std::int64_t reads = std::int64_t{columns->N} * columns->C * inside(columns->depth) *
                                 inside(columns->height) * inside(columns->width);
      return static_cast<double>(elements - reads);
    }
  }
  throw BadInput(text("counter = ", name, ": this problem has none of that name"));
}

}  // namespace convladder::check
