/// @file winograd_test.cpp
/// @brief Fewer multiplications: the matrices that a program makes, and the bound on their
/// rounding.
#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "cpu_reference/conv2d/winograd_matrices.hpp"
#include "ladders/ladders.hpp"
#include "oracle/data.hpp"
#include "oracle/transform_bounds.hpp"
#include "tests/array_of.hpp"

namespace convladder::testing {
namespace {

using cpu_reference::conv2d::Fraction;
using cpu_reference::conv2d::is_exact;
using cpu_reference::conv2d::winograd_matrices;

}  // namespace

TEST_SUITE_BEGIN("oracle");

TEST_CASE("winograd's matrices make the sums of products, for any points") {
  CHECK(is_exact(winograd_matrices<2, 3>({0, 1, -1})));
  CHECK(is_exact(winograd_matrices<2, 3>({Fraction(1, 2), 3, -5})));
  CHECK(is_exact(winograd_matrices<3, 2>({0, 1, -1})));
  CHECK(is_exact(winograd_matrices<3, 3>({0, 1, -1, 2})));
  CHECK(is_exact(winograd_matrices<4, 3>({0, 1, -1, 2, -2})));
  CHECK(is_exact(winograd_matrices<3, 4>({0, 1, -1, 2, -2})));
  CHECK(is_exact(winograd_matrices<4, 3>({0, 1, -1, Fraction(1, 2), -2})));
  CHECK(is_exact(winograd_matrices<6, 3>({0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2)})));
  CHECK(is_exact(winograd_matrices<2, 5>({0, 1, -1, 2, -2})));
}

TEST_CASE("is_exact sees a wrong entry of any of winograd's matrices") {
  const auto right = winograd_matrices<4, 3>({0, 1, -1, 2, -2});
  auto wrong = right;
  wrong.at[3][4] = 8;
  CHECK_FALSE(is_exact(wrong));
  wrong = right;
  wrong.g[5][2] = Fraction(1, 3);
  CHECK_FALSE(is_exact(wrong));
  wrong = right;
  wrong.bt[5][3] = 5;
  CHECK_FALSE(is_exact(wrong));
}

TEST_CASE("the bound of F(m x m, 3 x 3) counts what cancels") {
  // One pixel, one tap: x = 1 at the window's place (1, 1), w = 2 in the middle.
  const Conv2dProblem conv = validated(Conv2dProblem{.H = 3, .W = 3, .R = 3, .S = 3});
  const Arrays inputs = {{"x", array_of({0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 3, 3})},
                         {"weights", array_of({0, 0, 0, 0, 2, 0, 0, 0, 0}, {1, 1, 3, 3})}};
  const Expected y = reference("conv2d", conv, inputs)[0];
  CHECK(y.magnitude == std::vector<double>{2});
  // F(2, 3): y0 has m1 and m2, each |d1| * |g1| / 2 here; so 1 down and across.
  CHECK(with_winograd_bound(y, conv, inputs, 2).magnitude == std::vector<double>{2});
  // F(4, 3): y0 has m1 ... m4: 4/6 + 4/6 + 2/12 + 2/12 = 5/3, down and across.
  CHECK(with_winograd_bound(y, conv, inputs, 4).magnitude[0] == doctest::Approx(2 * 25.0 / 9));
  // Over i and -i: four quarters.
  const WinogradTile i = {4, WinogradPoints::imaginary};
  CHECK(with_winograd_bound(y, conv, inputs, i).magnitude == std::vector<double>{2});
  CHECK(with_winograd_bound(y, conv, inputs, 4).values == y.values);
  CHECK(with_winograd_bound(y, conv, inputs, 4).longest_sum == 2);
}

TEST_CASE("the bound of single outputs is that of all of them") {
  const Conv2dProblem conv = validated(Conv2dProblem{.N = 2,
                                                     .C = 6,
                                                     .H = 7,
                                                     .W = 9,
                                                     .K = 4,
                                                     .R = 3,
                                                     .S = 3,
                                                     .pad = {2, 0, 1, 3},
                                                     .groups = 2,
                                                     .bias = true});
  for (const char* name : {"conv2d", "conv2d_dgrad"}) {
    const Arrays inputs = make_inputs(ladder(name).signature(conv), Data::real, 1, 1 << 10);
    const Expected output = reference(name, conv, inputs)[0];
    std::vector<std::int64_t> places(output.values.size());
    std::iota(places.begin(), places.end(), 0);
    for (const WinogradTile tile :
         {WinogradTile(2), WinogradTile(4), WinogradTile(4, WinogradPoints::imaginary)}) {
      CAPTURE(name);
      CAPTURE(tile.m);
      const Expected whole = with_winograd_bound(output, conv, inputs, tile);
      const std::vector<double>& all = whole.magnitude;
      const WinogradBound single = winograd_bound_at(conv, inputs, tile, places);
      CHECK(single.longest_sum == whole.longest_sum);
      REQUIRE(single.magnitude.size() == all.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        CHECK(single.magnitude[i] == doctest::Approx(all[i]));
      // A place in the middle, alone.
      CHECK(winograd_bound_at(conv, inputs, tile, std::vector<std::int64_t>{17}).magnitude[0] ==
            doctest::Approx(all[17]));
    }
  }
}

TEST_CASE("the bound of pieces of three taps counts what cancels, along a row alone") {
  // x = 1 in the third column, w = 2 at the second tap: of the first tile, in the first piece.
  const Conv2dProblem conv = validated(Conv2dProblem{.H = 1, .W = 8, .S = 6, .bias = true});
  Arrays inputs = {{"x", array_of({0, 0, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 8})},
                   {"weights", array_of({0, 2, 0, 0, 0, 0}, {1, 1, 1, 6})},
                   {"bias", array_of({0}, {1})}};
  const Expected y = reference("conv2d", conv, inputs)[0];
  CHECK(y.values == std::vector<double>{0, 2, 0});
  // d2 is in the products at 0, 1, -1 and infinity; g1 in those at 1, -1 and 2.
  // At 1: 1 * 1/2; at -1: 3 * 1/6.
  const Expected bounded = with_winograd_bound(y, conv, inputs, kWinogradPieces);
  CHECK(bounded.values == y.values);
  CHECK(bounded.longest_sum == 3);  // both pieces, and the bias
  for (const double b : bounded.magnitude) CHECK(b == doctest::Approx(2));
  // The second piece meets the next window: x = 1 there, and the last tap.
  inputs = {{"x", array_of({0, 0, 0, 0, 0, 0, 0, 1}, {1, 1, 1, 8})},
            {"weights", array_of({0, 0, 0, 0, 0, 4}, {1, 1, 1, 6})},
            {"bias", array_of({-1}, {1})}};
  // d4 is in the product at infinity alone, and that in the last output.
  CHECK(with_winograd_bound(reference("conv2d", conv, inputs)[0], conv, inputs, kWinogradPieces)
            .magnitude == std::vector<double>{1, 1, 5});
}

TEST_CASE("the bound of single outputs is that of all of them, for pieces") {
  for (const int columns : {4, 5, 6}) {
    CAPTURE(columns);
    const Conv2dProblem conv = validated(Conv2dProblem{.N = 2,
                                                       .C = 4,
                                                       .H = 7,
                                                       .W = 9,
                                                       .K = 6,
                                                       .R = 2,
                                                       .S = columns,
                                                       .pad = {2, 0, 1, 3},
                                                       .groups = 2,
                                                       .bias = true});
    const Arrays inputs = make_inputs(conv2d_signature(conv), Data::real, 1, 1 << 10);
    const Expected output = reference("conv2d", conv, inputs)[0];
    const Expected whole = with_winograd_bound(output, conv, inputs, kWinogradPieces);
    std::vector<std::int64_t> places(output.values.size());
    std::iota(places.begin(), places.end(), 0);
    const WinogradBound single = winograd_bound_at(conv, inputs, kWinogradPieces, places);
    CHECK(single.longest_sum == whole.longest_sum);
    CHECK(whole.longest_sum == 2 * 2 * 2 + 1);
    REQUIRE(single.magnitude.size() == whole.magnitude.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      CHECK(single.magnitude[i] == doctest::Approx(whole.magnitude[i]));
      CHECK(whole.magnitude[i] > output.magnitude[i] * (1 - 1e-12));
    }
  }
}

TEST_CASE("the bounds of Winograd's gradients count what cancels, and only for the weights") {
  // One number of dy, and x = 1 at its window's place (1, 1).
  const Conv2dProblem conv = validated(Conv2dProblem{.H = 3, .W = 3, .R = 3, .S = 3});
  const Arrays inputs = {{"x", array_of({0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 3, 3})},
                         {"dy", array_of({-2}, {1, 1, 1, 1})}};
  const std::vector<Expected> right = reference("conv2d_wgrad", conv, inputs);
  const Expected dw = expected_of_winograd("conv2d_wgrad", right[0], conv, inputs, 4);
  CHECK(dw.values == std::vector<double>{0, 0, 0, 0, -2, 0, 0, 0, 0});
  // Along a line: 4/6 of products 1 and 2, 2/24 of 3 and 4; times 1 and 1, 1 and 2, 1 and 4.
  const double line[3] = {3.0 / 2, 5.0 / 3, 2};
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t s = 0; s < 3; ++s)
      CHECK(dw.magnitude[3 * r + s] == doctest::Approx(2 * line[r] * line[s]));
  CHECK(dw.longest_sum == 1);
  // F(3, 2): halves of products 1 and 2, times 1 and 1 for each tap.
  CHECK(expected_of_winograd("conv2d_wgrad", right[0], conv, inputs, 2).magnitude ==
        std::vector<double>(9, 2));
  const Expected db = expected_of_winograd("conv2d_wgrad", right[1], conv, inputs, 4);
  CHECK(db.magnitude == std::vector<double>{2});
  CHECK_THROWS_AS(expected_of_winograd("conv2d_wgrad", right[0], conv, inputs, 3),
                  std::logic_error);
}

TEST_CASE("the bound of single weights is that of all of them") {
  const Conv2dProblem conv = validated(Conv2dProblem{
      .N = 2, .C = 6, .H = 7, .W = 9, .K = 4, .R = 3, .S = 3, .pad = {2, 0, 1, 3}, .groups = 2});
  const Arrays inputs = make_inputs(conv2d_wgrad_signature(conv), Data::real, 1, 1 << 10);
  const Expected dw = reference("conv2d_wgrad", conv, inputs)[0];
  std::vector<std::int64_t> places(dw.values.size());
  std::iota(places.begin(), places.end(), 0);
  for (const int m : {2, 4}) {
    CAPTURE(m);
    const Expected whole = with_winograd_gradient_bound(dw, conv, inputs, m);
    const WinogradBound single = winograd_gradient_bound_at(conv, inputs, m, places);
    CHECK(single.longest_sum == whole.longest_sum);
    CHECK(whole.longest_sum == (m == 2 ? 2 * 4 * 6 : 2 * 2 * 3));
    REQUIRE(single.magnitude.size() == whole.magnitude.size());
    for (std::size_t i = 0; i < whole.magnitude.size(); ++i) {
      CHECK(single.magnitude[i] == doctest::Approx(whole.magnitude[i]));
      CHECK(whole.magnitude[i] > dw.magnitude[i] * (1 - 1e-12));  // it has all that the sum has
    }
  }
}

TEST_CASE("data leave room for pieces of three taps, in the forward pass alone") {
  const Conv2dProblem conv = validated(Conv2dProblem{.C = 6, .H = 9, .W = 9, .R = 6, .S = 6});
  CHECK(exact_sum("conv2d", conv) == 64 * (6 * 36 + 1));
  CHECK(exact_sum("conv2d_dgrad", conv) == 36);
  CHECK(exact_sum("conv2d", validated(Conv2dProblem{.H = 9, .W = 9, .R = 7, .S = 6})) == 43);
  CHECK(exact_sum("conv2d", validated(Conv2dProblem{.H = 9, .W = 9, .R = 6, .S = 7})) == 43);
}

TEST_CASE("data leave room for F(4 x 4, 3 x 3), and only where it is taken") {
  Conv2dProblem conv = validated(Conv2dProblem{.C = 64, .H = 9, .W = 9, .R = 3, .S = 3});
  CHECK(exact_sum("conv2d", conv) == 64 * (64 * 9 + 1));
  CHECK(exact_sum("conv2d_wgrad", conv) == 64 * 7 * 7);
  conv.stride = {2, 2};
  CHECK(exact_sum("conv2d", validated(conv)) == 64 * 9 + 1);
  conv.stride = {1, 1};
  conv.dtype = DType::f16;
  CHECK(exact_sum("conv2d", validated(conv)) == 64 * 9 + 1);
  // Integers other than 0 remain, as long as plain sums of ones are exact.
  conv.dtype = DType::f32;
  conv.C = 1 << 20;
  CHECK(exact_sum("conv2d", validated(conv)) == (1 << 24) - 3);
  CHECK(make_inputs(conv2d_signature(validated(Conv2dProblem{})), Data::integer, 1, (1 << 24) - 3)
            .contains("x"));
  conv.C = 1 << 21;
  CHECK(exact_sum("conv2d", validated(conv)) == 9 * (1 << 21) + 1);  // too long for integers
}

TEST_SUITE_END();

}  // namespace convladder::testing
