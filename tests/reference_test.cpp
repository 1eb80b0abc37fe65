/// @file reference_test.cpp
/// @brief The references by hand, the data that rungs are tried on, and the order of arrays in
/// memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "oracle/memory_order.hpp"
#include "oracle/runner.hpp"
#include "oracle/samples.hpp"
#include "tests/array_of.hpp"

namespace convladder::testing {

TEST_SUITE_BEGIN("oracle");

TEST_CASE("memory order: nhwc by hand, and back") {
  const Conv2dProblem conv =
      validated(Conv2dProblem{.N = 2, .C = 3, .H = 2, .W = 4, .layout = Layout::nhwc});
  const ArraySpec x = conv2d_signature(conv).inputs.at(0);
  Array array(DType::f32, x.shape);
  const auto values = array.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Array stored = in_memory(array, x.order);
  const auto in_order = stored.as<float>();
  // Pixel (0, 0) of image 0, its three channels; then pixel (0, 1); the second image begins at 24.
  CHECK(in_order[0] == 0);
  CHECK(in_order[1] == 8);
  CHECK(in_order[2] == 16);
  CHECK(in_order[3] == 1);
  CHECK(in_order[24] == 24);
  CHECK(in_order[25] == 32);
  const LayoutIndex4 at{conv.layout, conv.C, conv.H, conv.W};
  CHECK(in_order[static_cast<std::size_t>(at(1, 2, 1, 3))] == 47);
  CHECK(at(1, 2, 1, 3) == 47);
  CHECK(at(0, 1, 1, 2) == 19);
  CHECK(in_order[19] == 8 + 4 + 2);
  const Array back = from_memory(stored, x.order);
  CHECK(std::ranges::equal(back.as<float>(), values));
}

TEST_CASE("memory order: columns become rows in nhwc") {
  const Im2colProblem rows = validated(Im2colProblem{
      .N = 2, .C = 2, .rank = 1, .width = {4, 2}, .request = Request::add, .layout = Layout::nhwc});
  const Signature signature = im2col_signature(rows);
  const ArraySpec &x = signature.inputs.at(0), &into = signature.inputs.at(1);
  CHECK(place_in_memory(5, x.order) == 3);          // channel 1 of pixel 1
  CHECK(place_in_memory(8 + 6, x.order) == 8 + 5);  // of image 1, channel 1 of pixel 2
  // [n][c * tap][window] = [2][4][3]: row 3 (channel 1, tap 1) of window 2 is the last of its row.
  const ArraySpec& col = signature.outputs.at(0);
  CHECK(place_in_memory(3 * 3 + 2, col.order) == 2 * 4 + 3);
  CHECK(place_in_memory(1 * 3 + 0, col.order) == 2);  // tap 1 of channel 0, after tap 0 of both
  CHECK(place_in_memory(12 + 2 * 3 + 1, col.order) == 12 + 4 + 1);
  CHECK(into.order.axes == col.order.axes);
}

TEST_CASE("reference: ReLU comes after the bias, and bounds stay those of the sum") {
  Conv2dProblem conv = validated(Conv2dProblem{.W = 3, .bias = true});
  const Arrays inputs = {{"x", array_of({-5, 1, 2}, {1, 1, 1, 3})},
                         {"weights", array_of({2}, {1, 1, 1, 1})},
                         {"bias", array_of({-3}, {1})}};
  CHECK(reference("conv2d", conv, inputs)[0].values == std::vector<double>{-13, -1, 1});
  conv.activation = Activation::relu;
  const Expected y = reference("conv2d", conv, inputs)[0];
  CHECK(y.values == std::vector<double>{0, 0, 1});
  CHECK(y.magnitude == std::vector<double>{13, 5, 7});
  const std::int64_t places[] = {0, 1, 2};
  const auto sampled = reference_at("conv2d", conv, inputs, "y", places);
  for (std::size_t i = 0; i < 3; ++i) CHECK(sampled.at(i).value == y.values[i]);
}

TEST_CASE("data: integers whose sums stay exact") {
  for (const std::int64_t longest : {1LL, 1000LL, 262143LL, 262144LL, 1000000LL, 4000000LL}) {
    const GemmProblem gemm{.M = 50, .N = 50, .K = 50};
    const Arrays inputs = make_inputs(gemm_signature(gemm), Data::integer, 1, longest);
    float largest = 0;
    for (const auto& [name, array] : inputs) {
      for (const float value : array.as<float>()) {
        REQUIRE(value == std::trunc(value));
        largest = std::max(largest, std::abs(value));
      }
    }
    CAPTURE(longest);
    CHECK(largest >= 1);
    CHECK(largest <= 8);
    CHECK(static_cast<double>(longest) * largest * largest + largest < 16777216.0);
  }
  CHECK_THROWS_AS(
      make_inputs(gemm_signature({.M = 1, .N = 1, .K = 1}), Data::integer, 1, 1LL << 24), BadInput);
}

TEST_CASE("data: reals on both sides of zero, no two arrays alike") {
  const GemmProblem gemm{.M = 40, .N = 40, .K = 40};
  const Arrays inputs = make_inputs(gemm_signature(gemm), Data::real, 1, 1);
  int negative = 0, positive = 0;
  for (const float value : inputs.at("a").as<float>()) {
    REQUIRE(value >= -1.0f);
    REQUIRE(value < 1.0f);
    (value < 0 ? negative : positive)++;
  }
  CHECK(negative > 600);
  CHECK(positive > 600);
  CHECK(!std::equal(inputs.at("a").as<float>().begin(), inputs.at("a").as<float>().end(),
                    inputs.at("b").as<float>().begin()));
}

TEST_CASE("data: the same seed gives the same numbers on every machine") {
  const Conv2dProblem conv = validated(Conv2dProblem{.H = 1, .W = 8});
  const auto first = [&](Data data, std::uint64_t seed) {
    const Arrays inputs = make_inputs(conv2d_signature(conv), data, seed, 1);
    const auto x = inputs.at("x").as<float>();
    return std::vector<float>(x.begin(), x.end());
  };
  CHECK(first(Data::integer, 1) == first(Data::integer, 1));
  CHECK(first(Data::integer, 1) != first(Data::integer, 2));
  CHECK(first(Data::integer, 1) == std::vector<float>{-1, -1, -6, -2, 2, -5, -4, -5});
  CHECK(first(Data::real, 1) != first(Data::real, 2));
}

TEST_CASE("data: one array does not depend on another's size") {
  const auto x = [](int filters) {
    const Conv2dProblem conv = validated(Conv2dProblem{.C = 2, .H = 5, .W = 5, .K = filters});
    const Arrays inputs = make_inputs(conv2d_signature(conv), Data::integer, 1, 9);
    const auto values = inputs.at("x").as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  CHECK(x(1) == x(77));
}

TEST_CASE("reference: a convolution by hand, with padding, stride and dilation") {
  // x = 1 2 3 4 5, w = 1 10, dilation 2, padding 1 before and 2 after, stride 2: columns -1, 1,
  // 3, 5.
  const Conv2dProblem conv = validated(Conv2dProblem{
      .W = 5, .S = 2, .pad = {0, 0, 1, 2}, .stride = {1, 2}, .dilation = {1, 2}, .bias = true});
  REQUIRE(conv.Q == 3);
  const Arrays inputs = {{"x", array_of({1, 2, 3, 4, 5}, {1, 1, 1, 5})},
                         {"weights", array_of({1, 10}, {1, 1, 1, 2})},
                         {"bias", array_of({100}, {1})}};
  const std::vector<Expected> y = reference("conv2d", conv, inputs);
  CHECK(y[0].values == std::vector<double>{100 + 0 + 20, 100 + 2 + 40, 100 + 4 + 0});
  CHECK(y[0].magnitude == std::vector<double>{120, 142, 104});
  CHECK(y[0].longest_sum == 3);
}

TEST_CASE("reference: both gradients of the same convolution by hand") {
  const Conv2dProblem conv = validated(
      Conv2dProblem{.W = 5, .S = 2, .pad = {0, 0, 1, 2}, .stride = {1, 2}, .dilation = {1, 2}});
  const Array dy = array_of({1, 2, 3}, {1, 1, 1, 3});
  const auto dx =
      reference("conv2d_dgrad", conv, {{"dy", dy}, {"weights", array_of({1, 10}, {1, 1, 1, 2})}});
  // Window q reads columns 2q - 1 and 2q + 1: column 1 is read by q = 0 (tap 1) and q = 1 (tap 0).
  CHECK(dx[0].values == std::vector<double>{0, 10 * 1 + 1 * 2, 0, 10 * 2 + 1 * 3, 0});
  const auto dw =
      reference("conv2d_wgrad", conv, {{"dy", dy}, {"x", array_of({1, 2, 3, 4, 5}, {1, 1, 1, 5})}});
  CHECK(dw[0].values == std::vector<double>{2 * 2 + 3 * 4, 1 * 2 + 2 * 4});
  CHECK(dw[1].values == std::vector<double>{6});
}

TEST_CASE("reference: im2col and col2im by hand, with each request") {
  Im2colProblem p = validated(Im2colProblem{.rank = 1, .width = {4, 2, 1, 0, 2, 1}});
  REQUIRE(p.columns() == 2);
  const Array x = array_of({1, 2, 3, 4}, {1, 1, 4});
  CHECK(reference("im2col", p, {{"x", x}})[0].values == std::vector<double>{0, 2, 1, 3});
  const Array col = array_of({1, 2, 3, 4}, {1, 2, 2});
  CHECK(reference("col2im", p, {{"col", col}})[0].values == std::vector<double>{3, 2, 4, 0});
  p.request = Request::add;
  const Array into = array_of({10, 20, 30, 40}, {1, 2, 2});
  CHECK(reference("im2col", p, {{"x", x}, {"into", into}})[0].values ==
        std::vector<double>{10, 22, 31, 43});
  const Array into_x = array_of({10, 20, 30, 40}, {1, 1, 4});
  CHECK(reference("col2im", p, {{"col", col}, {"into", into_x}})[0].values ==
        std::vector<double>{13, 22, 34, 40});
  p.request = Request::none;
  CHECK(reference("im2col", p, {{"x", x}, {"into", into}})[0].values ==
        std::vector<double>{10, 20, 30, 40});
  CHECK(reference("col2im", p, {{"col", col}, {"into", into_x}})[0].values ==
        std::vector<double>{10, 20, 30, 40});
}

TEST_CASE("reference: a GEMM by hand") {
  const GemmProblem p = validated(GemmProblem{.M = 2, .N = 2, .K = 3});
  const auto c = reference(
      "gemm", p,
      {{"a", array_of({1, 2, 3, 4, 5, 6}, {2, 3})}, {"b", array_of({1, 0, -1, 1, 2, 2}, {3, 2})}});
  CHECK(c[0].values == std::vector<double>{5, 8, 11, 17});
  CHECK(c[0].magnitude == std::vector<double>{9, 8, 21, 17});
}

TEST_CASE("reference: a product's scale comes before its bias, its ReLU after it") {
  GemmProblem p = validated(GemmProblem{
      .M = 2, .N = 2, .K = 1, .dtype = DType::f8, .scale_a = 0.5f, .scale_b = 4, .bias = true});
  const Arrays inputs = {{"a", rounded_to(array_of({1, -3}, {2, 1}), DType::f8)},
                         {"b", rounded_to(array_of({2, 5}, {1, 2}), DType::f8)},
                         {"bias", array_of({1, -12}, {2})}};
  CHECK(reference("gemm", p, inputs)[0].values == std::vector<double>{5, -2, -11, -42});
  p.activation = Activation::relu;
  const Expected c = reference("gemm", p, inputs)[0];
  CHECK(c.values == std::vector<double>{5, 0, 0, 0});
  CHECK(c.magnitude == std::vector<double>{5, 22, 13, 42});
  CHECK(c.longest_sum == 2);
  const std::int64_t places[] = {0, 1, 2, 3};
  const auto sampled = reference_at("gemm", p, inputs, "c", places);
  for (std::size_t i = 0; i < 4; ++i) CHECK(sampled.at(i).value == c.values[i]);
}

TEST_CASE("a line's transform by halves is the definition's sum") {
  for (const int length : {1, 2, 3, 4, 6, 8, 12, 20, 32}) {
    for (const FftDirection direction : {FftDirection::forward, FftDirection::inverse}) {
      const FftProblem p = {.N = 2, .L = length, .direction = direction};
      const Arrays inputs = make_inputs(fft_signature(p), Data::real, 1, 1);
      const auto x = inputs.at("x").as<float>();
      const Expected y = reference("fft", p, inputs).at(0);
      const double turn = direction == FftDirection::forward ? -2 : 2;
      for (int n = 0; n < p.N; ++n) {
        for (int k = 0; k < length; ++k) {
          std::complex<double> sum = 0;
          for (int j = 0; j < length; ++j) {
            const auto at = static_cast<std::size_t>(2 * (n * length + j));
            sum += std::complex<double>(x[at], x[at + 1]) *
                   std::polar(1.0, turn * std::numbers::pi * j * k / length);
          }
          const auto at = static_cast<std::size_t>(2 * (n * length + k));
          CHECK(std::abs(y.values[at] - sum.real()) < 1e-12);
          CHECK(std::abs(y.values[at + 1] - sum.imag()) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("a plane's transform is the definition's sum, and half of it if x is real") {
  for (const FftInput input : {FftInput::complex, FftInput::real}) {
    const FftProblem p = {.N = 3, .H = 6, .L = 5, .input = input};
    const Arrays inputs = make_inputs(fft_signature(p), Data::real, 1, 1);
    const auto x = inputs.at("x").as<float>();
    const Expected y = reference("fft", p, inputs).at(0);
    std::size_t output = 0;
    for (int n = 0; n < p.N; ++n) {
      for (int u = 0; u < p.H; ++u) {
        for (int v = 0; v < p.frequencies(); ++v, output += 2) {
          std::complex<double> sum = 0;
          for (int h = 0; h < p.H; ++h) {
            for (int w = 0; w < p.L; ++w) {
              const auto i = static_cast<std::size_t>((n * p.H + h) * p.L + w);
              const auto point = p.is_real() ? std::complex<double>(x[i])
                                             : std::complex<double>(x[2 * i], x[2 * i + 1]);
              const double turns = 1.0 * h * u / p.H + 1.0 * w * v / p.L;
              sum += point * std::polar(1.0, -2 * std::numbers::pi * turns);
            }
          }
          CHECK(std::abs(y.values[output] - sum.real()) < 1e-12);
          CHECK(std::abs(y.values[output + 1] - sum.imag()) < 1e-12);
        }
      }
    }
    CHECK(output == y.values.size());
  }
}

TEST_CASE("two real lines may share their rounding errors, and a third one has its own") {
  const FftProblem p = {.N = 3, .L = 2, .input = FftInput::real};
  const Expected y = reference("fft", p, {{"x", array_of({3, 1, 10, -2, 5, 5}, {3, 2})}}).at(0);
  // Their frequencies are 4 and 2, 8 and 12, 10 and 0.
  CHECK(y.magnitude == std::vector<double>{16, 16, 16, 16, 16, 16, 16, 16, 10, 10, 10, 10});
}

TEST_CASE("an unknown ladder has no reference") {
  CHECK_THROWS_AS(reference("conv4d", GemmProblem{}, {}), std::logic_error);
}

TEST_SUITE_END();

}  // namespace convladder::testing
