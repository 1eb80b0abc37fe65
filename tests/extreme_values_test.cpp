/// @file extreme_values_test.cpp
/// @brief Numbers of unusual sizes hide no wrong result; and what is said of given arrays.
#include "tests/extreme_values.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <span>

#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"
#include "tests/contains.hpp"

namespace convladder::testing {
namespace {

/// The bottom rung of conv2d, whose output is then changed where it is of float32.
Rung spoilt(const std::function<void(std::span<float> y)>& change) {
  Rung rung = ladder("conv2d").rungs.front();
  auto& run = rung.code[static_cast<std::size_t>(Where::cpu)]->run;
  run = [then = run, change](const Problem& problem, const Arguments& arrays) {
    then(problem, arrays);
    const auto& conv = std::get<Conv2dProblem>(problem);
    if (conv.dtype == DType::f32)
      change({arrays.out<float>("y"),
              static_cast<std::size_t>(element_count(conv2d_signature(conv).outputs[0].shape))});
  };
  return rung;
}

Comparison of_gemm(int K, float a, float b, Roundings roundings) {
  GemmProblem gemm;
  gemm.M = 3, gemm.N = 4, gemm.K = K;
  Array left(DType::f32, {3, K}), right(DType::f32, {K, 4});
  std::ranges::fill(left.as<float>(), a);
  std::ranges::fill(right.as<float>(), b);
  return {ladder("gemm"), validated(gemm), Data::real,
          Arrays{{"a", std::move(left)}, {"b", std::move(right)}}, roundings};
}

}  // namespace

TEST_SUITE_BEGIN("extreme values");

TEST_CASE("the definition is right on numbers of all sizes") {
  for (const char* name : {"conv2d", "conv2d_dgrad", "conv2d_wgrad", "gemm"}) {
    CAPTURE(name);
    const ExtremeReport report =
        check_extreme_values(ladder(name), ladder(name).rungs.front(), Where::cpu);
    CHECK(report.runs > 10);
    CHECK(report.declined == 0);
    CHECK(report.failures.empty());
  }
}

TEST_CASE("a result that is wrong by a part, or lost, is found on numbers of all sizes") {
  const auto failures = [](const auto& change) {
    const Ladder& of = ladder("conv2d");
    std::set<std::string> kinds;
    for (const std::string& failure : check_extreme_values(of, spoilt(change), Where::cpu).failures)
      kinds.insert(failure.substr(0, failure.find(':')));
    return kinds.size();
  };
  CHECK(failures([](std::span<float> y) {
          for (float& value : y) value *= 1.01f;
        }) == std::size(kExtremes));
  CHECK(failures([](std::span<float> y) {
          for (float& value : y) value = 0;
        }) == std::size(kExtremes));
  CHECK(failures([](std::span<float> y) {
          for (float& value : y) value = std::numeric_limits<float>::quiet_NaN();
        }) == std::size(kExtremes));
}

TEST_CASE("roundings that add up are remarked on where data are given, and wrong where drawn") {
  const Rung& loop = ladder("gemm").rungs.front();
  const Outcome given = of_gemm(200, 0.1f, 1, Roundings::any).run(loop, Where::cpu);
  CHECK(given.status == Status::agrees);
  CHECK(given.remark == "roundings add up");
  const Outcome drawn = of_gemm(200, 0.1f, 1, Roundings::independent).run(loop, Where::cpu);
  CHECK(drawn.status == Status::differs);
  CHECK(drawn.remark.empty());
  const Outcome exact = of_gemm(200, 0.5f, 1, Roundings::any).run(loop, Where::cpu);
  CHECK(exact.exact);
  CHECK(exact.remark.empty());
}

TEST_CASE("in TF32 a number near 0 beside a very large one hides no wrong result") {
  GemmProblem gemm{.M = 2, .N = 3, .K = 16, .precision = Precision::tf32};
  gemm = validated(gemm);
  Array a(DType::f32, {2, 16}), b(DType::f32, {16, 3});
  std::ranges::fill(a.as<float>(), 1.0f);
  std::ranges::fill(b.as<float>(), 1.0f / 1024);
  a.as<float>()[3] = 1e-40f;  // meets b[3]
  a.as<float>()[5] = 0;       // meets b[5], which is very large in one column
  b.as<float>()[5 * 3 + 1] = 1e38f;
  const Comparison comparison(ladder("gemm"), gemm, Data::real,
                              Arrays{{"a", std::move(a)}, {"b", std::move(b)}}, Roundings::any);
  Rung rung = ladder("gemm").rungs.front();
  CHECK(comparison.run(rung, Where::cpu).status == Status::agrees);
  auto& run = rung.code[static_cast<std::size_t>(Where::cpu)]->run;
  run = [then = run](const Problem& problem, const Arguments& arrays) {
    then(problem, arrays);
    arrays.out<float>("c")[2] *= 1.01f;
  };
  const Outcome wrong = comparison.run(rung, Where::cpu);
  CHECK(wrong.status == Status::differs);
  CHECK(contains(wrong.reason, "c[m=0, n=2]"));
}

TEST_CASE("the worst case has an end, too") {
  const Comparison comparison = of_gemm(200, 0.1f, 1, Roundings::any);
  const Expected& right = comparison.expected().front();
  const auto verdict = [&](double units) {
    Array c(DType::f32, {3, 4});
    std::ranges::fill(c.as<float>(), static_cast<float>(right.values[0] * (1 + units * 0x1p-24)));
    return judge(right, c, Data::real, comparison.problem(), {}, Roundings::any);
  };
  CHECK(verdict(20).agrees);
  CHECK_FALSE(verdict(20).adds_up);
  CHECK(verdict(190).agrees);
  CHECK(verdict(190).adds_up);
  CHECK_FALSE(verdict(220).agrees);
}

TEST_CASE("next to a type's largest number, it and infinity are as good") {
  Expected right = of_gemm(1, 1, 1, Roundings::any).expected().front();
  const double beyond = 0x1.ffffffp127;  // from here on, a number is rounded to infinity
  std::ranges::fill(right.values, beyond);
  std::ranges::fill(right.magnitude, beyond);
  const auto agrees = [&](float number) {
    Array c(DType::f32, {3, 4});
    std::ranges::fill(c.as<float>(), number);
    return judge(right, c, Data::real, GemmProblem{}, {}).agrees;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(agrees(kInfinity));
  CHECK(agrees(std::numeric_limits<float>::max()));
  CHECK_FALSE(agrees(-kInfinity));
  CHECK_FALSE(agrees(3e38f));
  CHECK_FALSE(agrees(std::numeric_limits<float>::quiet_NaN()));
}

TEST_SUITE_END();

}  // namespace convladder::testing
