/// @file judge_test.cpp
/// @brief The comparison: which results it accepts, exact or rounded, and which it must reject.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"
#include "tests/array_of.hpp"
#include "tests/contains.hpp"

namespace convladder::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Expected values of one float output, with magnitude 1 and sums with one product.
Expected expected_values(std::vector<double> values, Shape shape, std::string axes) {
  const std::vector<double> ones(values.size(), 1.0);
  return {{"y", std::move(axes), std::move(shape)}, std::move(values), ones, {}, 1};
}

Verdict judge_values(const std::vector<double>& right, const std::vector<float>& found, Data data) {
  const Shape shape = {static_cast<std::int64_t>(right.size())};
  return judge(expected_values(right, shape, "k"), array_of(found, shape), data, GemmProblem{}, {});
}

}  // namespace

TEST_SUITE_BEGIN("oracle");

TEST_CASE("comparison accepts only the exact bits in exact mode") {
  CHECK(judge_values({1, -2, 0}, {1, -2, 0}, Data::integer).agrees);
  CHECK(judge_values({1, -2, 0}, {1, -2, 0}, Data::integer).exact);
  CHECK(judge_values({0}, {-0.0f}, Data::integer).agrees);  // the sign of a zero sum means nothing
  CHECK_FALSE(judge_values({1, -2}, {1, 2}, Data::integer).agrees);
  CHECK_FALSE(judge_values({1}, {std::nextafter(1.0f, 2.0f)}, Data::integer).agrees);
  CHECK_FALSE(judge_values({3}, {-3}, Data::integer).agrees);
  CHECK_FALSE(judge_values({1}, {0}, Data::integer).agrees);
}

TEST_CASE("comparison rejects NaN and infinity in both modes, in every position") {
  for (const Data data : {Data::integer, Data::real}) {
    for (const float wrong : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (std::size_t i = 0; i < 3; ++i) {
        std::vector<float> found = {1, 2, 3};
        found[i] = wrong;
        const Verdict verdict = judge_values({1, 2, 3}, found, data);
        CHECK_FALSE(verdict.agrees);
        CHECK_FALSE(verdict.exact);
        CHECK(std::isinf(verdict.max_error));
      }
    }
    CHECK_FALSE(judge_values({1, 2}, {kNan, kNan}, data).agrees);
  }
}

TEST_CASE("comparison accepts only the same infinity for an infinity, in every type") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto judged = [&](double right, float found, const Spread& spread = {}) {
      Expected expected = expected_values({right}, {1}, "k");
      expected.spec.dtype = dtype;
      expected.magnitude = {kInfinity};
      return judge(expected, rounded_to(array_of({found}, {1}), dtype), Data::real, GemmProblem{},
                   {}, Roundings::any, spread)
          .agrees;
    };
    CHECK(judged(kInfinity, kInfinity));
    for (const float wrong : {5.0f, -5.0f, 0.0f, -kInfinity, kNan})
      CHECK_FALSE(judged(kInfinity, wrong));
    // ReLU turns negative infinity into 0.
    CHECK(judged(0, 0));
    for (const float wrong : {5.0f, kInfinity, -kInfinity, kNan}) CHECK_FALSE(judged(0, wrong));
    Spread nan_for_infinity(1);
    nan_for_infinity.let_infinity_be_nan();
    CHECK(judged(0, kNan, nan_for_infinity));
    CHECK_FALSE(judged(0, 5, nan_for_infinity));
  }
}

TEST_CASE("comparison allows a transform (4 + 2 passes) 2^-24 of its line's largest output") {
  Expected expected = expected_values({0}, {1}, "k");
  expected.magnitude = {64};
  expected.longest_sum = 2048;
  expected.passes = 10;
  const double bound = 24 * std::ldexp(64.0, -24);
  const auto judged = [&](double found) {
    return judge(expected, array_of({static_cast<float>(found)}, {1}), Data::real, FftProblem{},
                 {});
  };
  CHECK(judged(bound).agrees);
  CHECK(judged(-bound).agrees);
  CHECK_FALSE(judged(bound * 1.0001).agrees);
}

TEST_CASE("comparison allows rounding within (4 + 2 sqrt(L)) 2^-24 S, not beyond") {
  // L = 1 and S = 1: six units of 2^-24.
  const double bound = 6 * std::ldexp(1.0, -24);
  CHECK(judge_values({0}, {static_cast<float>(bound)}, Data::real).agrees);
  CHECK_FALSE(judge_values({0}, {static_cast<float>(bound * 1.0001)}, Data::real).agrees);
  CHECK(judge_values({0}, {static_cast<float>(-bound)}, Data::real).agrees);
  CHECK_FALSE(judge_values({0}, {static_cast<float>(bound * 1.0001)}, Data::integer).agrees);
  const Verdict rounded = judge_values({0.1}, {0.1f}, Data::real);
  CHECK(rounded.agrees);
  CHECK(rounded.exact);
  CHECK(rounded.max_error == std::abs(double{0.1f} - 0.1));
}

TEST_CASE("comparison bounds each element by its own sum, so that one wrong pixel is detected") {
  std::vector<double> right(10000, 1000.0);
  std::vector<float> found(10000, 1000.0f);
  Expected expected = expected_values(right, {10000}, "k");
  for (double& magnitude : expected.magnitude) magnitude = 1000.0;
  expected.values[5000] = 0.001;
  expected.magnitude[5000] = 0.001;
  found[5000] = 0.0011f;  // relative to the norm of all: 1e-9
  const Verdict verdict = judge(expected, array_of(found, {10000}), Data::real, GemmProblem{}, {});
  CHECK_FALSE(verdict.agrees);
  CHECK(contains(verdict.difference, "y[k=5000]"));
}

TEST_CASE("comparison without magnitudes allows no rounding") {
  Expected expected = expected_values({0.5}, {1}, "k");
  expected.magnitude.clear();
  CHECK(judge(expected, array_of({0.5f}, {1}), Data::real, GemmProblem{}, {}).agrees);
  CHECK_FALSE(
      judge(expected, array_of({std::nextafter(0.5f, 1.0f)}, {1}), Data::real, GemmProblem{}, {})
          .agrees);
}

TEST_CASE("comparison rejects another shape or element type") {
  const Expected expected = expected_values({1, 2}, {2}, "k");
  const Verdict longer =
      judge(expected, array_of({1, 2, 3}, {3}), Data::integer, GemmProblem{}, {});
  CHECK_FALSE(longer.agrees);
  CHECK(contains(longer.difference, "y has shape 3"));
  CHECK_FALSE(judge(expected, array_of({1, 2}, {1, 2}), Data::integer, GemmProblem{}, {}).agrees);
  CHECK_FALSE(judge(expected, Array(DType::i32, {2}), Data::integer, GemmProblem{}, {}).agrees);
  CHECK_FALSE(judge(expected, array_of({}, {0}), Data::integer, GemmProblem{}, {}).agrees);
}

TEST_CASE("comparison of integers is exact, also beyond the precision of float") {
  Expected expected{{"units", "uc", {1, 2}, DType::i32}, {}, {}, {(1 << 24) + 1, -7}, 1};
  Array found(DType::i32, {1, 2});
  found.as<std::int32_t>()[0] = (1 << 24) + 1;
  found.as<std::int32_t>()[1] = -7;
  CHECK(judge(expected, found, Data::real, GemmProblem{}, {}).agrees);
  found.as<std::int32_t>()[0] = 1 << 24;
  const Verdict verdict = judge(expected, found, Data::real, GemmProblem{}, {});
  CHECK_FALSE(verdict.agrees);
  CHECK(contains(verdict.difference, "units[u=0, c=0]: expected 16777217, found 16777216"));
}

/// TF32 has 13 bits fewer. Adding half of the last kept bit turns the truncation into rounding.
float cut_to_tf32(float value, bool round) {
  const std::uint32_t half = round ? 0x1000 : 0;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + half) & 0xffffe000u);
}

/// The product in float of operands converted by `convert`.
template <class Convert>
Array product_of(const GemmProblem& gemm, const Arrays& inputs, const Convert& convert) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const auto N = static_cast<std::size_t>(gemm.N), K = static_cast<std::size_t>(gemm.K);
  Array c(DType::f32, {gemm.M, gemm.N});
  for (std::size_t m = 0; m < static_cast<std::size_t>(gemm.M); ++m) {
    for (std::size_t n = 0; n < N; ++n) {
      float sum = 0;
      for (std::size_t k = 0; k < K; ++k) sum += convert(a[m * K + k]) * convert(b[k * N + n]);
      c.as<float>()[m * N + n] = sum;
    }
  }
  return c;
}

TEST_CASE("comparison distinguishes float products from products rounded or truncated to TF32") {
  const GemmProblem gemm = validated(GemmProblem{.M = 4, .N = 4, .K = 256});
  const Comparison comparison(ladder("gemm"), gemm, Data::real, 3);
  const auto agrees = [&](const auto& convert) {
    const Array c = product_of(gemm, comparison.inputs(), convert);
    return judge(comparison.expected().at(0), c, Data::real, gemm, {}).agrees;
  };
  CHECK(agrees([](float value) { return value; }));
  CHECK_FALSE(agrees([](float value) { return cut_to_tf32(value, false); }));
  CHECK_FALSE(agrees([](float value) { return cut_to_tf32(value, true); }));
}

TEST_CASE(
    "comparison allows fp8 accumulators the error of 128 products on tensor cores, and no more") {
  const GemmProblem gemm =
      validated(GemmProblem{.M = 4, .N = 20, .K = 4096, .dtype = DType::f8, .scale_a = 0.1f});
  const Comparison comparison(ladder("gemm"), gemm, Data::positive, 3);
  const auto a = rounded_to(comparison.inputs().at("a"), DType::f32),
             b = rounded_to(comparison.inputs().at("b"), DType::f32);
  // Sums of 32 products, truncated after 13 fraction bits; after that many products they are
  // promoted to float.
  const auto agrees = [&](std::size_t together) {
    Array c(DType::f32, {gemm.M, gemm.N});
    for (std::size_t i = 0; i < 4 * 20; ++i) {
      float sum = 0, part = 0;
      for (std::size_t k = 0; k < 4096; ++k) {
        part += a.as<float>()[i / 20 * 4096 + k] * b.as<float>()[k * 20 + i % 20];
        if (k % 32 == 31)
          part = std::bit_cast<float>(std::bit_cast<std::uint32_t>(part) & 0xfffffc00u);
        if (k % together != together - 1) continue;
        sum += part;
        part = 0;
      }
      c.as<float>()[static_cast<std::size_t>(i)] = 0.1f * sum;
    }
    return judge(comparison.expected().at(0), c, Data::positive, gemm, {}).agrees;
  };
  CHECK(agrees(128));
  CHECK_FALSE(agrees(4096));
}

TEST_CASE(
    "comparison distinguishes operands rounded to TF32 from truncated ones, with positive data") {
  const GemmProblem gemm =
      validated(GemmProblem{.M = 5, .N = 40, .K = 300, .precision = Precision::tf32});
  const auto agrees = [&](Data data, bool round) {
    const Comparison comparison(ladder("gemm"), gemm, data, 3);
    const Array c = product_of(gemm, comparison.inputs(),
                               [&](float value) { return cut_to_tf32(value, round); });
    return judge(comparison.expected().at(0), c, data, gemm, {}).agrees;
  };
  for (const Data data : {Data::integer, Data::real, Data::positive}) CHECK(agrees(data, true));
  CHECK(agrees(Data::integer, false));
  CHECK(agrees(Data::real, false));  // errors of both signs cancel
  CHECK_FALSE(agrees(Data::positive, false));
}

TEST_SUITE_END();

}  // namespace convladder::testing
