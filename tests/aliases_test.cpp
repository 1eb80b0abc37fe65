/// @file aliases_test.cpp
/// @brief Operations that the rungs of other ladders compute: every rung, under the other name.
#include <doctest/doctest.h>

#include "core/conv2d_transpose.hpp"
#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"

namespace convladder::testing {

TEST_SUITE_BEGIN("aliases");

TEST_CASE("an alias has the rungs of a ladder, and is no ladder") {
  const Ladder& alias = ladder("conv2d_transpose");
  const Ladder& served = ladder("conv2d_dgrad");
  CHECK(&alias == &aliases().front());
  REQUIRE(alias.rungs.size() == served.rungs.size());
  for (std::size_t i = 0; i < alias.rungs.size(); ++i)
    CHECK(alias.rungs[i].name == served.rungs[i].name);
  for (const Ladder& other : ladders()) CHECK(other.name != alias.name);
}

TEST_CASE("transposed convolutions by every rung of conv2d_dgrad") {
  const Ladder& alias = ladder("conv2d_transpose");
  const Conv2dTranspose plain{
      .N = 2, .C = 16, .H = 6, .W = 5, .K = 16, .R = 3, .S = 3, .pad = {1, 1, 1, 1}};
  std::vector<Conv2dTranspose> problems;
  for (const bool bias : {false, true}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        Conv2dTranspose t = plain;
        t.bias = bias, t.dtype = dtype, t.layout = layout;
        problems.push_back(t);
        t.stride = {2, 2}, t.out_padding = {1, 0};
        problems.push_back(t);
      }
    }
  }
  problems.push_back({.N = 3,
                      .C = 4,
                      .H = 4,
                      .W = 7,
                      .K = 4,
                      .R = 2,
                      .S = 3,
                      .pad = {1, 0, 0, 2},
                      .dilation = {1, 2},
                      .groups = 4,
                      .bias = true});
  problems.push_back({.N = 0, .C = 2, .H = 4, .W = 4, .K = 3, .bias = true});
  problems.push_back({.C = 3,
                      .H = 5,
                      .W = 4,
                      .K = 2,
                      .R = 4,
                      .S = 2,
                      .same = true,
                      .stride = {3, 2},
                      .bias = true,
                      .precision = Precision::tf32});
  std::size_t agreed = 0;
  for (const Conv2dTranspose& t : problems) {
    const Conv2dProblem problem = gradient_of(t);
    CAPTURE(describe_transpose(problem));
    for (const Data data : {Data::integer, Data::real}) {
      const Comparison comparison(alias, problem, data, 3);
      for (const Rung& rung : alias.rungs) {
        for (const Where where : {Where::cpu, Where::emulated}) {
          if (!rung.code_at(where)) continue;
          const Outcome outcome = comparison.run(rung, where);
          CAPTURE(rung.name);
          CAPTURE(outcome.reason);
          CHECK((outcome.status == Status::agrees || outcome.status == Status::declined));
          agreed += outcome.status == Status::agrees;
        }
      }
    }
  }
  CHECK(agreed > 150);
}

TEST_SUITE_END();

}  // namespace convladder::testing
