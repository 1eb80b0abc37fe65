/// @file im2col.cpp
/// @brief Definition of im2col: windows as columns.
#include "oracle/ladders/columns.hpp"

namespace convladder::oracle {
namespace im2col {
namespace {

std::int64_t longest_sum(const Im2colProblem&) {
  return 2;  // and the old value
}

std::vector<Expected> outputs(const Im2colProblem& p, const Arrays& inputs) {
  const auto x = inputs.at("x").as<float>();
  // Only `add` rounds: a copy is exact.
  Expected col =
      expected_for(im2col_signature(p).outputs[0], longest_sum(p), p.request == Request::add);
  start_from_old_values(col, inputs, p.request);
  if (p.request == Request::none) return {col};
  parallel_for(std::int64_t{p.N} * p.C, [&](std::int64_t nc) {
    for_each_column_element(p, nc / p.C, nc % p.C, [&](std::int64_t col_i, std::int64_t x_i) {
      const auto i = static_cast<std::size_t>(col_i);
      const double value = x_i < 0 ? 0.0 : double{x[static_cast<std::size_t>(x_i)]};
      col.values[i] += value;
      if (!col.magnitude.empty()) col.magnitude[i] += std::abs(value);
    });
  });
  return {col};
}

/// The position that tap `tap` of window `window` reads along an axis; -1 in the padding.
std::int64_t read_by(const WindowAxis& axis, std::int64_t window, std::int64_t tap) {
  const std::int64_t i = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return i >= 0 && i < axis.size ? i : -1;
}

ExpectedElement element(const Im2colProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  ExpectedElement sum = old_value(p, inputs, place);
  if (p.request == Request::none) return sum;
  const Indices window(place % p.columns(), p.depth.out, p.height.out, p.width.out);
  const std::int64_t row = place / p.columns() % p.rows(), n = place / p.columns() / p.rows();
  const Indices tap(row, p.depth.kernel, p.height.kernel, p.width.kernel);  // c t r s
  const std::int64_t d = read_by(p.depth, window.b, tap.b);
  const std::int64_t h = read_by(p.height, window.c, tap.c);
  const std::int64_t w = read_by(p.width, window.d, tap.d);
  if (d < 0 || h < 0 || w < 0) return sum;
  add(sum,
      at(inputs.at("x").as<float>(),
         (n * p.C + tap.a) * p.channel_size() + (d * p.height.size + h) * p.width.size + w),
      1.0);
  return sum;
}

}  // namespace
}  // namespace im2col

Definition im2col_definition() {
  return define<Im2colProblem>(
      {.longest_sum = im2col::longest_sum, .outputs = im2col::outputs, .element = im2col::element});
}

}  // namespace convladder::oracle
