/// @file conv2d_dgrad.cpp
/// @brief Definition of conv2d_dgrad: a scatter, whereas rungs gather.
#include "oracle/ladders/conv2d_products.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder::oracle {
namespace conv2d_dgrad {
namespace {

std::int64_t longest_sum(const Conv2dProblem& conv) {
  return std::int64_t{conv.K / conv.groups} * conv.R * conv.S;
}

std::vector<Expected> outputs(const Conv2dProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto dy = inputs.at("dy").as<float>(), weights = inputs.at("weights").as<float>();
  Expected dx = expected_for(conv2d_dgrad_signature(conv).outputs[0], longest_sum(conv));
  // Output channels of one image add to the same dx: only images and groups are independent.
  const int group_k = conv.K / conv.groups;
  parallel_for(std::int64_t{conv.N} * conv.groups, [&](std::int64_t ng) {
    const int n = static_cast<int>(ng / conv.groups), g = static_cast<int>(ng % conv.groups);
    for (int k = g * group_k; k < (g + 1) * group_k; ++k) {
      for_each_row_of_products(
          conv, n, k, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi, std::int64_t count) {
            accumulate_row(dx, xi, conv.stride.w, at(weights, wi), {dy, yi}, count);
          });
    }
  });
  return {dx};
}

ExpectedElement element(const Conv2dProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto dy = inputs.at("dy").as<float>(), weights = inputs.at("weights").as<float>();
  const Indices x(place, p.C, p.H, p.W);  // n c h w
  const std::int64_t channels = p.C / p.groups, filters = p.K / p.groups;
  const std::int64_t first = x.b / channels * filters;
  ExpectedElement sum;
  for (std::int64_t k = first; k < first + filters; ++k) {
    for (int r = 0; r < p.R; ++r) {
      // The start of the window that reads x at its tap r, if it exists.
      const std::int64_t top = x.c + p.pad.top - std::int64_t{r} * p.dilation.h;
      if (top < 0 || top % p.stride.h != 0 || top / p.stride.h >= p.P) continue;
      for (int s = 0; s < p.S; ++s) {
        const std::int64_t left = x.d + p.pad.left - std::int64_t{s} * p.dilation.w;
        if (left < 0 || left % p.stride.w != 0 || left / p.stride.w >= p.Q) continue;
        add(sum, at(dy, ((x.a * p.K + k) * p.P + top / p.stride.h) * p.Q + left / p.stride.w),
            at(weights, ((k * channels + x.b % channels) * p.R + r) * p.S + s));
      }
    }
  }
  return sum;
}

}  // namespace
}  // namespace conv2d_dgrad

Definition conv2d_dgrad_definition() {
  return define<Conv2dProblem>({.longest_sum = conv2d_dgrad::longest_sum,
                                .outputs = conv2d_dgrad::outputs,
                                .element = conv2d_dgrad::element,
                                .headroom = winograd_headroom,
                                .winograd = with_winograd_bound});
}

}  // namespace convladder::oracle
