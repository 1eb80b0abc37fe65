/// @file fourier_bound_test.cpp
/// @brief The bound of rungs that multiply spectra in float, and what it makes of whole numbers.
#include "oracle/fourier_bound.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/conv2d_problem.hpp"
#include "oracle/judge.hpp"

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

TEST_CASE("what spectra make of whole numbers is compared after rounding, below half of one") {
  const Expected expected = bounded();
  const std::vector<float> right = {-7, -1, -1, -9, -3, -1};
  const auto judged = [&](float off, double scale) {
    Expected wider = expected;
    for (double& magnitude : wider.magnitude) magnitude *= scale;
    std::vector<float> found = right;
    found[3] += off;
    return judge(wider, floats({3, 1, 1, 2}, found), Data::integer, kConv, {});
  };
  CHECK(judged(0, 1).exact);
  CHECK(judged(0.25f, 1).exact);
  CHECK_FALSE(judged(1, 1).agrees);
  CHECK_FALSE(judged(std::nanf(""), 1).agrees);
  // Where the bound is half of one or more, it alone decides, and nothing is exact by rounding.
  CHECK(judged(0.25f, 1e5).agrees);
  CHECK_FALSE(judged(0.25f, 1e5).exact);
  CHECK_FALSE(judged(8, 1e5).agrees);
}

}  // namespace
}  // namespace convladder
