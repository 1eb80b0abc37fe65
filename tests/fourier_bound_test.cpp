/// @file fourier_bound_test.cpp
/// @brief The bound of rungs that multiply spectra in float, and the rounding of integer results.
#include <doctest/doctest.h>

#include <cmath>

#include "core/conv2d_problem.hpp"
#include "oracle/judge.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder {
namespace {

Array floats(const Shape& shape, const std::vector<float>& values) {
  Array array(DType::f32, shape);
  std::copy(values.begin(), values.end(), array.as<float>().begin());
  return array;
}

/// Three images of 1 x 2 pixels, one filter of a tap.
const Conv2dProblem kConv = validated(Conv2dProblem{.N = 3, .C = 1, .H = 1, .W = 2, .bias = true});
const Arrays kInputs = {{"x", floats({3, 1, 1, 2}, {3, 0, 0, 4, 1, 0})},
                        {"weights", floats({1, 1, 1, 1}, {-2})},
                        {"bias", floats({1}, {-1})}};

Expected bounded() {
  return with_fourier_bound(reference("conv2d", kConv, kInputs)[0], kConv, kInputs);
}

TEST_CASE("the bound of spectra is the norm of both images of a pair, times the filter's") {
  // ||(3, 0, 0, 4)|| ||-2|| + |-1| for images 0 and 1; image 2 is alone.
  CHECK(bounded().magnitude == std::vector<double>{11, 11, 11, 11, 3, 3});
  CHECK(bounded().passes == kFourierPasses);
  CHECK(fourier_bound_at(kConv, kInputs, std::vector<std::int64_t>{0, 3, 4}) ==
        std::vector<double>{11, 11, 3});
}

TEST_CASE("what spectra make of exact data is rounded where the bound is below half of the grid") {
  const Expected expected = bounded();
  CHECK(expected.grid == 1);
  const std::vector<float> right = {-7, -1, -1, -9, -3, -1};
  const auto judged = [&](float off, double scale, double grid = 1) {
    Expected wider = expected;
    for (double& magnitude : wider.magnitude) magnitude *= scale;
    wider.grid = grid;
    std::vector<float> found = right;
    found[3] += off;
    return judge(wider, rounded_spectra(wider, floats({3, 1, 1, 2}, found)), Data::integer, kConv,
                 {});
  };
  CHECK(judged(0, 1).exact);
  CHECK(judged(0.25f, 1).exact);
  CHECK_FALSE(judged(0.25f, 1, 0.25).agrees);
  CHECK(judged(0.1f, 1, 0.25).exact);
  CHECK_FALSE(judged(1, 1).agrees);
  CHECK_FALSE(judged(std::nanf(""), 1).agrees);
  // Where the bound is half of it or more, it alone decides, and nothing is exact by rounding.
  CHECK(judged(0.25f, 1e5).agrees);
  CHECK_FALSE(judged(0.25f, 1e5).exact);
  CHECK_FALSE(judged(8, 1e5).agrees);
}

TEST_CASE("the grid of a convolution is that of its operands' lowest bits, and of the bias") {
  Arrays inputs = kInputs;
  const auto grid = [&] {
    return with_fourier_bound(reference("conv2d", kConv, inputs)[0], kConv, inputs).grid;
  };
  inputs.at("x").as<float>()[1] = 0.75f;
  CHECK(grid() == 0.25);
  inputs.at("weights").as<float>()[0] = -1.5f;
  CHECK(grid() == 0.125);
  inputs.at("bias").as<float>()[0] = std::ldexp(3.0f, -9);
  CHECK(grid() == std::ldexp(1.0, -9));
}

}  // namespace
}  // namespace convladder
