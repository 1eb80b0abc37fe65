/// @file fft.cpp
/// @brief The discrete Fourier transform.
#include <string>
#include <vector>

#include "core/complex.hpp"
#include "core/fft_problem.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

/// Each shows one kind of mistake, and its name says which.
std::vector<TestProblem> fft_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, FftProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  for (const FftRing ring : {FftRing::mersenne, FftRing::complex}) {
    const auto inverse = FftDirection::inverse;
    // Whole numbers find every wrong index, and floats what is inexact: few lengths are enough.
    const bool all = ring == FftRing::mersenne;
    add("minimal", {.N = 1, .L = 1, .ring = ring});
    add("lines of one point, inverse", {.N = 3, .L = 1, .direction = inverse, .ring = ring});
    add("lines of two points", {.N = 5, .L = 2, .ring = ring});
    add("no lines", {.N = 0, .L = 8, .ring = ring});
    for (int length = 4; length <= 1024; length *= 2) {
      const bool small = length == 16 || length == 64 || length == 128;
      if (!all && !small && length != 1024) continue;
      add("a power of two", {.N = length < 256 ? 3 : 2, .L = length, .ring = ring},
          small ? Size::small : Size::full);
    }
    add("inverse", {.N = 2, .L = 32, .direction = inverse, .ring = ring});
    add("inverse, long lines", {.N = 1, .L = 512, .direction = inverse, .ring = ring}, Size::full);
    for (const std::size_t offset : {4u, 8u, 12u}) {
      add("arrays at 16 n + " + std::to_string(offset) + " bytes", {.N = 3, .L = 16, .ring = ring},
          all ? Size::small : Size::full, offset);
    }
  }
  add("lines that fill one block and begin another", {.N = 257, .L = 8, .ring = FftRing::mersenne});
  add("lines of a warp, several blocks", {.N = 19, .L = 64, .ring = FftRing::mersenne}, Size::full);
  for (const int length : {2048, 4096, 8192, 1 << 15, 1 << 17}) {
    add("a long line", {.N = 1, .L = length, .ring = FftRing::mersenne}, Size::full);
    list.back().once = true;
    // By the definition, the longer ones would take a minute.
    if (length > 4096)
      list.back().rungs = {"cuda_optimized/fft/passes", "cuda_optimized/fft/four_step"};
  }
  for (const int length : {3, 12, 101, 360}) {
    add("no power of two", {.N = 2, .L = length}, length == 12 ? Size::small : Size::full);
  }
  add("no power of two, inverse", {.N = 2, .L = 15, .direction = FftDirection::inverse});
  return list;
}

FftProblem random_fft(Dice& dice) {
  FftProblem p{.direction = dice(0, 2) == 0 ? FftDirection::inverse : FftDirection::forward,
               .ring = dice(0, 2) == 0 ? FftRing::complex : FftRing::mersenne};
  p.L = p.ring == FftRing::complex && dice(0, 1) == 0 ? dice(1, 200) : 1 << dice(0, 10);
  p.N = dice(1, 2048 / p.L < 2 ? 2 : 2048 / p.L);
  return validated(p);
}

/// Over the ring in which every equation holds exactly.
std::vector<FftProblem> fft_bases() {
  return {{.N = 3, .L = 1, .ring = FftRing::mersenne},
          {.N = 2, .L = 2, .ring = FftRing::mersenne},
          {.N = 3, .L = 8, .ring = FftRing::mersenne},
          {.N = 2, .L = 16, .direction = FftDirection::inverse, .ring = FftRing::mersenne},
          {.N = 2, .L = 64, .ring = FftRing::mersenne},
          {.N = 1, .L = 256, .ring = FftRing::mersenne}};
}

using Point = Complex<Mersenne>;
using Lines = std::vector<Point>;  ///< [N][L]

Lines points_in(const Array& array) {
  Lines points;
  for (std::int64_t i = 0; 2 * i < array.size(); ++i)
    points.push_back(point_of<Mersenne>(floats(array).data(), i, false));
  return points;
}

Array array_with(const FftProblem& p, const Lines& points) {
  Array array(DType::f32, {p.N, p.L, 2});
  for (std::size_t i = 0; i < points.size(); ++i)
    set_point(array.as<float>().data(), static_cast<std::int64_t>(i), false, points[i]);
  return array;
}

Point conjugate(Point z) { return {z.re, Mersenne{} - z.im}; }

/// A point for each of the problem's: of(line's first point, its number in the line).
template <class Of>
Lines made_of(const FftProblem& p, const Of& of) {
  Lines points;
  for (std::int64_t i = 0; i < p.points(); ++i) points.push_back(of(at(i - i % p.L), at(i % p.L)));
  return points;
}

FftProblem turned_round(FftProblem p) {
  p.direction =
      p.direction == FftDirection::forward ? FftDirection::inverse : FftDirection::forward;
  return p;
}

/// What holds without a look at the definition.
std::vector<Identity<FftProblem>> fft_identities(const Subject& f, const CheckOptions&) {
  const auto y_of = [&f](const FftProblem& p, const Lines& x) {
    return points_in(f(p, {{"x", array_with(p, x)}}).at("y"));
  };
  const auto x_of = [&f](const FftProblem& p, std::uint64_t salt = 0) {
    return points_in(f.inputs(p, salt).at("x"));
  };
  const auto same = [](const FftProblem& p, const Lines& found, const Lines& expected) {
    expect_same(array_with(p, found), array_with(p, expected));
  };
  const auto times_length = [](const FftProblem& p, Point z) {
    return z * Point{{static_cast<std::uint32_t>(p.L) % Mersenne::kPrime}, {0}};
  };
  return {
      {"linear",
       {},
       [=](const FftProblem& p) {
         const Lines x = x_of(p), more = x_of(p, 1);
         const Lines y = y_of(p, x), y_more = y_of(p, more);
         const Point a = {{3}, {5}};
         same(p, y_of(p, made_of(p, [&](auto n, auto j) { return a * x[n + j] + more[n + j]; })),
              made_of(p, [&](auto n, auto k) { return a * y[n + k] + y_more[n + k]; }));
       }},
      {"there and back is L times x",
       {},
       [=](const FftProblem& p) {
         const Lines x = x_of(p);
         same(p, y_of(turned_round(p), y_of(p, x)),
              made_of(p, [&](auto n, auto j) { return times_length(p, x[n + j]); }));
       }},
      {"a line turned round by a point turns its frequencies (shift)",
       {},
       [=](const FftProblem& p) {
         const Lines x = x_of(p), y = y_of(p, x);
         const auto L = at(p.L);
         // x[j + 1]: point k is turned back by k steps of the line.
         same(p, y_of(p, made_of(p, [&](auto n, auto j) { return x[n + (j + 1) % L]; })),
              made_of(p, [&](auto n, auto k) {
                const Point root = root_of_unity<Mersenne>(static_cast<std::int64_t>(k), p.L);
                return y[n + k] * (p.direction == FftDirection::forward ? conjugate(root) : root);
              }));
       }},
      {"as much energy, L times (Parseval)",
       {},
       [=](const FftProblem& p) {
         const Lines x = x_of(p), y = y_of(p, x);
         Point before = {}, after = {};
         for (const Point& z : x) before = before + z * conjugate(z);
         for (const Point& z : y) after = after + z * conjugate(z);
         const Point expected = times_length(p, before);
         if (after.re.value != expected.re.value)
           throw Broken{text("energy ", after.re.value, " instead of ", expected.re.value)};
       }},
      {"products of frequencies are a convolution",
       {},
       [=](const FftProblem& p) {
         const Lines x = x_of(p), other = x_of(p, 1);
         const Lines y = y_of(p, x), y_other = y_of(p, other);
         const auto L = at(p.L);
         const Lines product =
             made_of(p, [&](auto n, auto k) { return y[n + k] * y_other[n + k]; });
         same(p, y_of(turned_round(p), product), made_of(p, [&](auto n, auto j) {
                Point sum = {};
                for (std::size_t i = 0; i < L; ++i)
                  sum = sum + x[n + i] * other[n + (j + L - i) % L];
                return times_length(p, sum);
              }));
       }},
      {"frequencies of a real line are each other's conjugates",
       {},
       [=](const FftProblem& p) {
         Lines x = x_of(p);
         for (Point& z : x) z.im = {};
         const Lines y = y_of(p, x);
         const auto L = at(p.L);
         same(p, y, made_of(p, [&](auto n, auto k) { return conjugate(y[n + (L - k) % L]); }));
       }},
      {"a line alone", [](const FftProblem& p) { return p.N > 1; },
       [=](const FftProblem& p) {
         const Lines x = x_of(p), y = y_of(p, x);
         const FftProblem one = {.N = 1, .L = p.L, .direction = p.direction, .ring = p.ring};
         const auto begin = static_cast<std::ptrdiff_t>(p.L);
         same(one, y_of(one, Lines(x.begin() + begin, x.begin() + 2 * begin)),
              Lines(y.begin() + begin, y.begin() + 2 * begin));
       }},
      {"a NaN stays in its line", [](const FftProblem& p) { return p.N > 1; },
       [&f](FftProblem p) {
         p.ring = FftRing::complex;
         const Array x = f.inputs(p).at("x");
         Array with_nan = x;
         with_nan.as<float>()[at(p.L)] = std::nanf("");  // in the middle of the first line
         const Array y = f(p, {{"x", x}}).at("y"), found = f(p, {{"x", with_nan}}).at("y");
         const auto value = floats(y), instead = floats(found);
         for (std::size_t i = 0; i < value.size(); i += 2) {
           const bool right = i < 2 * at(p.L)
                                  ? std::isnan(instead[i]) || std::isnan(instead[i + 1])
                                  : instead[i] == value[i] && instead[i + 1] == value[i + 1];
           if (!right)
             throw Broken{text("point ", i / 2, " is ", instead[i], ", ", instead[i + 1])};
         }
       }},
  };
}

/// Nothing runs: a rung's arithmetic with sizes must not overflow.
std::vector<Problem> fft_limits() {
  std::vector<Problem> list;
  for (const auto& [n, length] : {std::pair{kLargestInt, 1},
                                  {kLargestInt, 4096},
                                  {1, kLargestInt},
                                  {kLargestInt, kLargestInt},
                                  {1, 1 << 30},
                                  {kLargestInt, 1 << 30}})
    list.emplace_back(validated(FftProblem{.N = n, .L = length}));
  list.emplace_back(validated(
      FftProblem{.N = kLargestInt, .L = kLongestMersenneLine, .ring = FftRing::mersenne}));
  return list;
}

}  // namespace

LadderTests fft_tests() {
  return {fft_problems,
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_fft(dice); });
          },
          {},
          checked<FftProblem>(fft_identities, fft_bases),
          fft_limits};
}

}  // namespace convladder::testing
