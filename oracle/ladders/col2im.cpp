/// @file col2im.cpp
/// @brief Definition of col2im: columns are added to their pixels.
#include "oracle/ladders/columns.hpp"

namespace convladder::oracle {
namespace col2im {
namespace {

std::int64_t longest_sum(const Im2colProblem& p) {
  return p.kernel_volume() + 1;  // and the old value
}

std::vector<Expected> outputs(const Im2colProblem& p, const Arrays& inputs) {
  const auto col = inputs.at("col").as<float>();
  Expected x =
      expected_for(col2im_signature(p).outputs[0], longest_sum(p), p.request != Request::none);
  start_from_old_values(x, inputs, p.request);
  if (p.request == Request::none) return {x};
  parallel_for(std::int64_t{p.N} * p.C, [&](std::int64_t nc) {
    for_each_column_element(p, nc / p.C, nc % p.C, [&](std::int64_t col_i, std::int64_t x_i) {
      if (x_i >= 0) accumulate(x, x_i, col[static_cast<std::size_t>(col_i)], 1.0);
    });
  });
  return {x};
}

ExpectedElement element(const Im2colProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  ExpectedElement sum = old_value(p, inputs, place);
  if (p.request == Request::none) return sum;
  const auto col = inputs.at("col").as<float>();
  const Indices pixel(place % p.channel_size(), p.depth.size, p.height.size, p.width.size);
  const std::int64_t nc = place / p.channel_size();
  // The window whose tap reads pixel i along an axis; -1 if there is none.
  const auto window_of = [](const WindowAxis& axis, std::int64_t i, std::int64_t tap) {
    const std::int64_t start = i + axis.pad_before - tap * axis.dilation;
    return start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.out
               ? start / axis.stride
               : -1;
  };
  for (std::int64_t t = 0; t < p.depth.kernel; ++t) {
    for (std::int64_t r = 0; r < p.height.kernel; ++r) {
      for (std::int64_t s = 0; s < p.width.kernel; ++s) {
        const std::int64_t o = window_of(p.depth, pixel.b, t);
        const std::int64_t u = window_of(p.height, pixel.c, r);
        const std::int64_t v = window_of(p.width, pixel.d, s);
        if (o < 0 || u < 0 || v < 0) continue;
        const std::int64_t tap = (t * p.height.kernel + r) * p.width.kernel + s;
        add(sum,
            at(col, (nc * p.kernel_volume() + tap) * p.columns() +
                        (o * p.height.out + u) * p.width.out + v),
            1.0);
      }
    }
  }
  return sum;
}

}  // namespace
}  // namespace col2im

Definition col2im_definition() {
  return define<Im2colProblem>(
      {.longest_sum = col2im::longest_sum, .outputs = col2im::outputs, .element = col2im::element});
}

}  // namespace convladder::oracle
