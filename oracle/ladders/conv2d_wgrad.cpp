/// @file conv2d_wgrad.cpp
/// @brief Definition of conv2d_wgrad: the gradients of a convolution with respect to its weights
/// and its bias.
#include "oracle/ladders/conv2d_products.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder::oracle {
namespace conv2d_wgrad {
namespace {

std::int64_t longest_sum(const Conv2dProblem& conv) {
  return std::max<std::int64_t>(1, std::int64_t{conv.N} * conv.P * conv.Q);
}

std::vector<Expected> outputs(const Conv2dProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto x = inputs.at("x").as<float>(), dy = inputs.at("dy").as<float>();
  const Signature signature = conv2d_wgrad_signature(conv);
  const std::int64_t longest = longest_sum(conv);
  Expected dw = expected_for(signature.outputs[0], longest);
  Expected db = expected_for(signature.outputs[1], longest);
  parallel_for(conv.K, [&](std::int64_t k) {
    const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
    for (int n = 0; n < conv.N; ++n) {
      for_each_row_of_products(
          conv, n, static_cast<int>(k),
          [&](std::int64_t xi, std::int64_t wi, std::int64_t yi, std::int64_t count) {
            accumulate_products(dw, wi, {x, xi, conv.stride.w}, {dy, yi}, count);
          });
      const std::int64_t first = (std::int64_t{n} * conv.K + k) * plane;
      for (std::int64_t i = first; i < first + plane; ++i) {
        accumulate(db, k, dy[static_cast<std::size_t>(i)], 1.0);
      }
    }
  });
  return {dw, db};
}

ExpectedElement conv2d_dw_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t place) {
  const auto x = inputs.at("x").as<float>(), dy = inputs.at("dy").as<float>();
  const std::int64_t channels = p.C / p.groups;
  const Indices tap(place, channels, p.R, p.S);  // k c r s
  const std::int64_t c = tap.a / (p.K / p.groups) * channels + tap.b;
  ExpectedElement sum;
  for (std::int64_t n = 0; n < p.N; ++n) {
    for (int row = 0; row < p.P; ++row) {
      const std::int64_t h = std::int64_t{row} * p.stride.h - p.pad.top + tap.c * p.dilation.h;
      if (h < 0 || h >= p.H) continue;
      for (int column = 0; column < p.Q; ++column) {
        const std::int64_t w =
            std::int64_t{column} * p.stride.w - p.pad.left + tap.d * p.dilation.w;
        if (w < 0 || w >= p.W) continue;
        add(sum, at(dy, ((n * p.K + tap.a) * p.P + row) * p.Q + column),
            at(x, ((n * p.C + c) * p.H + h) * p.W + w));
      }
    }
  }
  return sum;
}

ExpectedElement conv2d_db_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t k) {
  const auto dy = inputs.at("dy").as<float>();
  const std::int64_t plane = std::int64_t{p.P} * p.Q;
  ExpectedElement sum;
  for (std::int64_t n = 0; n < p.N; ++n) {
    for (std::int64_t i = 0; i < plane; ++i) add(sum, at(dy, (n * p.K + k) * plane + i), 1.0);
  }
  return sum;
}

ExpectedElement element(const Conv2dProblem& p, const Arrays& inputs, const std::string& name,
                        std::int64_t place) {
  return name == "db" ? conv2d_db_at(p, inputs, place) : conv2d_dw_at(p, inputs, place);
}

}  // namespace
}  // namespace conv2d_wgrad

Definition conv2d_wgrad_definition() {
  return define<Conv2dProblem>({.longest_sum = conv2d_wgrad::longest_sum,
                                .outputs = conv2d_wgrad::outputs,
                                .element = conv2d_wgrad::element,
                                .headroom = winograd_headroom,
                                .winograd = with_winograd_gradient_bound});
}

}  // namespace convladder::oracle
