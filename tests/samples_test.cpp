/// @file samples_test.cpp
/// @brief Single elements of a reference, against the whole one on every edge problem.
#include "oracle/samples.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "ladders/ladders.hpp"
#include "oracle/memory_order.hpp"
#include "oracle/reference.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {

TEST_SUITE_BEGIN("samples");

TEST_CASE("reference_at is reference(), element by element") {
  for (const char* name :
       {"conv2d", "conv2d_dgrad", "conv2d_wgrad", "im2col", "col2im", "gemm", "fft"}) {
    int compared = 0;
    for (const TestProblem& test : problems_of(name)) {
      if (test.size != Size::small) continue;
      CAPTURE(title_of(test));
      const Arrays inputs = make_inputs(ladder(name).signature(test.problem), Data::real, 5,
                                        longest_sum(name, test.problem));
      for (const Expected& expected : reference(name, test.problem, inputs)) {
        std::vector<std::int64_t> places(expected.values.size());
        std::iota(places.begin(), places.end(), 0);
        const std::vector<ExpectedElement> elements =
            reference_at(name, test.problem, inputs, expected.spec.name, places);
        REQUIRE(elements.size() == expected.values.size());
        for (std::size_t i = 0; i < elements.size(); ++i) {
          // Another order of summation, in double precision.
          const double magnitude = elements[i].magnitude;
          REQUIRE(std::abs(elements[i].value - expected.values[i]) <= 1e-13 * magnitude);
          if (!expected.magnitude.empty())
            REQUIRE(std::abs(magnitude - expected.magnitude[i]) <= 1e-13 * magnitude);
          ++compared;
        }
      }
    }
    CHECK_MESSAGE(compared > 1000, name);
  }
}

TEST_CASE("reference_at supports fp16 and bf16, and sums them exactly") {
  const GemmProblem gemm = validated(GemmProblem{.M = 2, .N = 3, .K = 40, .dtype = DType::bf16});
  const Arrays inputs = make_inputs(gemm_signature(gemm), Data::real, 1, 40);
  const std::int64_t places[] = {0, 1, 2, 3, 4, 5};
  const std::vector<double> all = reference("gemm", gemm, inputs).at(0).values;
  const auto elements = reference_at("gemm", gemm, inputs, "c", places);
  for (std::size_t i = 0; i < 6; ++i) CHECK(elements.at(i).value == all.at(i));
}

TEST_CASE("reference_at takes places in any order, and no others than dense ladders") {
  const GemmProblem gemm = validated(GemmProblem{.M = 2, .N = 3, .K = 4});
  const Arrays inputs = make_inputs(gemm_signature(gemm), Data::integer, 1, 4);
  const std::int64_t places[] = {5, 0, 5};
  const auto elements = reference_at("gemm", gemm, inputs, "c", places);
  CHECK(elements.at(0).value == elements.at(2).value);
  CHECK(elements.at(1).value == reference("gemm", gemm, inputs).at(0).values.at(0));
  CHECK_THROWS_AS(reference_at("tile_map", TileMapProblem{}, {}, "units", places),
                  std::logic_error);
}

TEST_CASE("place_in_memory is where in_memory puts an element") {
  const Conv2dProblem conv = validated(Conv2dProblem{
      .N = 2, .C = 3, .H = 4, .W = 5, .K = 6, .R = 2, .S = 3, .layout = Layout::nhwc});
  for (const ArraySpec& spec : conv2d_signature(conv).inputs) {
    Array array(DType::f32, spec.shape);
    std::iota(array.as<float>().begin(), array.as<float>().end(), 0.0f);
    const Array stored = in_memory(array, spec.order);
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const auto at = static_cast<std::size_t>(place_in_memory(i, spec.order));
      REQUIRE(stored.as<float>()[at] == static_cast<float>(i));
    }
  }
  CHECK(place_in_memory(7, MemoryOrder{}) == 7);
}

TEST_SUITE_END();

}  // namespace convladder::testing
