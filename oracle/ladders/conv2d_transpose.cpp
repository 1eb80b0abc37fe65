/// @file conv2d_transpose.cpp
/// @brief Definition of conv2d_transpose: the gradient of a convolution with respect to its input,
/// plus a bias.
#include "core/conv2d_transpose.hpp"

#include <cmath>

#include "oracle/judge.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace conv2d_transpose {
namespace {

const Definition& gradient() { return definition_of("conv2d_dgrad"); }

Conv2dProblem without_bias(Conv2dProblem p) {
  p.bias = false;
  return p;
}

Arrays of_gradient(const Arrays& inputs) {
  Arrays result = inputs;
  result["dy"] = inputs.at("x");
  return result;
}

std::int64_t longest_sum(const Conv2dProblem& p) {
  return gradient().longest_sum(p) + (p.bias ? 1 : 0);
}

/// Adds |bias|, and the effect of rounding the sums before the bias, to the bound of the rounding.
void widen(const Conv2dProblem& p, const Arrays& inputs, const std::vector<double>& sums,
           Expected& y) {
  if (!p.bias) return;
  const auto bias = inputs.at("bias").as<float>();
  y.factors = p.dtype;
  y.precision = p.precision;
  const double factor = allowed_error(y, Data::real);
  for (std::size_t i = 0; i < y.magnitude.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) / (std::int64_t{p.H} * p.W) % p.C;
    // Two sums that differ within the bound may be rounded to neighbouring values.
    const double rounding = error_of_rounding(std::abs(sums[i]) + factor * y.magnitude[i], p.dtype);
    y.magnitude[i] += std::abs(at(bias, channel)) + 2 * rounding / factor;
  }
}

/// The sums rounded to their type: dx, to which the bias is added.
double rounded_sum(double sum, DType dtype) {
  if (dtype == DType::f32) return sum;
  return with_float_type(
      dtype, [&]<class T>(T) { return double{to_float(rounded_to<T>(static_cast<float>(sum)))}; });
}

std::vector<Expected> outputs(const Conv2dProblem& p, const Arrays& inputs) {
  Expected y = gradient().outputs(without_bias(p), of_gradient(inputs)).front();
  y.spec = conv2d_transpose_signature(p).outputs.front();
  y.longest_sum = longest_sum(p);
  if (!p.bias) return {y};
  const std::vector<double> sums = y.values;
  widen(p, inputs, sums, y);
  const auto bias = inputs.at("bias").as<float>();
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) / (std::int64_t{p.H} * p.W) % p.C;
    y.values[i] = rounded_sum(sums[i], p.dtype) + at(bias, channel);
  }
  return {y};
}

Expected winograd(const Expected& expected, const Problem& problem, const Arrays& inputs,
                  WinogradTile tile, double least) {
  const auto& p = std::get<Conv2dProblem>(problem);
  Expected y = gradient().winograd(expected, without_bias(p), of_gradient(inputs), tile, least);
  widen(p, inputs, expected.values, y);
  return y;
}

std::int64_t headroom(const Conv2dProblem& p) { return gradient().headroom(without_bias(p)); }

}  // namespace
}  // namespace conv2d_transpose

Definition conv2d_transpose_definition() {
  return define<Conv2dProblem>({.longest_sum = conv2d_transpose::longest_sum,
                                .outputs = conv2d_transpose::outputs,
                                .headroom = conv2d_transpose::headroom,
                                .winograd = conv2d_transpose::winograd});
}

}  // namespace convladder::oracle
