/// @file fft.cpp
/// @brief The discrete Fourier transform.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/fft_problem.hpp"
#include "core/fft_to_real.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

/// Of real lines. Points of both lines of a pair, and the last one alone.
void add_real(std::vector<TestProblem>& list) {
  const auto add = [&](const std::string& name, FftProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    problem.input = FftInput::real;
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  for (const FftRing ring : {FftRing::mersenne, FftRing::complex}) {
    const bool all = ring == FftRing::mersenne;
    add("real points alone", {.N = 3, .L = 1, .ring = ring});
    add("real lines of two points", {.N = 3, .L = 2, .ring = ring});
    add("no real lines", {.N = 0, .L = 8, .ring = ring});
    add("one real line", {.N = 1, .L = 8, .ring = ring});
    add("real lines, an even number", {.N = 4, .L = 16, .ring = ring});
    for (int length = 4; length <= 1024; length *= 2) {
      const bool small = length == 64 || length == 128;
      if (!all && !small && length != 1024) continue;
      add("real lines, an odd number", {.N = length < 256 ? 5 : 3, .L = length, .ring = ring},
          small ? Size::small : Size::full);
    }
    for (const std::size_t offset : {4u, 8u, 12u}) {
      add("real lines at 16 n + " + std::to_string(offset) + " bytes",
          {.N = 3, .L = 16, .ring = ring}, all ? Size::small : Size::full, offset);
    }
  }
  add("pairs that fill one block and begin another", {.N = 515, .L = 8, .ring = FftRing::mersenne});
  for (const int length : {2048, 4096, 8192}) {
    add("long real lines", {.N = 3, .L = length, .ring = FftRing::mersenne}, Size::full);
    list.back().once = true;
    list.back().rungs = {"cpu_reference/fft/real_pairs", "cuda_optimized/fft/real_pairs"};
  }
  for (const int length : {3, 12}) add("real, no power of two", {.N = 3, .L = length});
}

/// From half of the frequencies to real points. Both lines of a pair, and the last one alone.
void add_to_real(std::vector<TestProblem>& list) {
  const auto add = [&](const std::string& name, FftProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    problem.input = FftInput::real;
    problem.direction = FftDirection::inverse;
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  for (const FftRing ring : {FftRing::mersenne, FftRing::complex}) {
    const bool all = ring == FftRing::mersenne;
    add("to real points alone", {.N = 3, .L = 1, .ring = ring});
    add("to real lines of two points", {.N = 3, .L = 2, .ring = ring});
    add("to no real lines", {.N = 0, .L = 8, .ring = ring});
    add("to one real line", {.N = 1, .L = 8, .ring = ring});
    add("to real lines, an even number", {.N = 4, .L = 16, .ring = ring});
    for (int length = 4; length <= 1024; length *= 2) {
      const bool small = length == 64 || length == 128;
      if (!all && !small && length != 1024) continue;
      add("to real lines, an odd number", {.N = length < 256 ? 5 : 3, .L = length, .ring = ring},
          small ? Size::small : Size::full);
    }
    for (const std::size_t offset : {4u, 8u, 12u}) {
      add("to real lines at 16 n + " + std::to_string(offset) + " bytes",
          {.N = 3, .L = 16, .ring = ring}, all ? Size::small : Size::full, offset);
    }
    add("to real planes", {.N = 2, .H = 4, .L = 8, .ring = ring});
  }
  add("pairs of half spectra that fill one block and begin another",
      {.N = 515, .L = 8, .ring = FftRing::mersenne});
  for (const int length : {2048, 4096, 8192}) {
    add("to long real lines", {.N = 3, .L = length, .ring = FftRing::mersenne}, Size::full);
    list.back().once = true;
    list.back().rungs = {"cpu_reference/fft/real_pairs_inverse",
                         "cuda_optimized/fft/real_pairs_inverse"};
  }
  for (const int length : {3, 12}) add("to real, no power of two", {.N = 3, .L = length});
  add("to real planes of no power of two", {.N = 2, .H = 6, .L = 5});
  add("to real planes of an odd number of rows", {.N = 2, .H = 3, .L = 4});
}

/// In two dimensions.
void add_planes(std::vector<TestProblem>& list) {
  const auto add = [&](const std::string& name, FftProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  const auto inverse = FftDirection::inverse;
  for (const FftRing ring : {FftRing::mersenne, FftRing::complex}) {
    const bool all = ring == FftRing::mersenne;
    add("a plane of one point", {.N = 2, .H = 1, .L = 1, .ring = ring});
    add("no planes", {.N = 0, .H = 8, .L = 8, .ring = ring});
    add("planes of one row", {.N = 3, .H = 1, .L = 16, .ring = ring});
    add("planes of one column", {.N = 3, .H = 16, .L = 1, .ring = ring});
    add("planes of 8 x 8", {.N = 3, .H = 8, .L = 8, .ring = ring});
    add("more rows than columns", {.N = 2, .H = 32, .L = 8, .ring = ring});
    add("more columns than rows, inverse",
        {.N = 2, .H = 8, .L = 16, .direction = inverse, .ring = ring});
    for (const std::size_t offset : {4u, 8u, 12u}) {
      add("planes at 16 n + " + std::to_string(offset) + " bytes",
          {.N = 2, .H = 8, .L = 8, .ring = ring}, all ? Size::small : Size::full, offset);
    }
    add("real planes", {.N = 2, .H = 4, .L = 8, .ring = ring, .input = FftInput::real});
  }
  // Last passes of all radices, along both axes.
  for (const auto& [H, L] : {std::pair{2, 4}, {4, 2}, {2, 16}, {16, 4}, {16, 16}, {4, 64}, {64, 8}})
    add("a plane", {.N = 2, .H = H, .L = L, .ring = FftRing::mersenne}, Size::full);
  add("planes that fill one block and begin another",
      {.N = 33, .H = 8, .L = 8, .ring = FftRing::mersenne});
  for (const auto& [H, L] :
       {std::pair{64, 64}, {1, 4096}, {8, 1024}, {1024, 8}, {128, 64}, {8, 2048}}) {
    add("a large plane", {.N = 1, .H = H, .L = L, .ring = FftRing::mersenne}, Size::full);
    list.back().once = true;
    // By the definition, they would take a minute.
    list.back().rungs = {"cpu_reference/fft/rows_and_columns", "cuda_optimized/fft/plane",
                         "cuda_optimized/fft/rows_and_columns"};
  }
  add("planes of no power of two", {.N = 2, .H = 3, .L = 5});
  add("real planes of no power of two", {.N = 2, .H = 6, .L = 5, .input = FftInput::real});
  add("planes of no power of two, inverse",
      {.N = 2, .H = 9, .L = 6, .direction = FftDirection::inverse});
}

/// Each shows one kind of mistake, and its name says which.
std::vector<TestProblem> fft_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, FftProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  for (const FftRing ring : {FftRing::mersenne, FftRing::complex}) {
    const auto inverse = FftDirection::inverse;
    // Integers reveal every wrong index, and floats show rounding errors: few lengths suffice.
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
  // 2 L - 1 is just not more than a power of two, and just more.
  for (const int length : {5, 64, 65}) add("padded to a power of two", {.N = 3, .L = length});
  add("a long line of a prime length", {.N = 1, .L = 8191}, Size::full);
  list.back().once = true;
  list.back().rungs = {"cpu_reference/fft/bluestein", "cuda_optimized/fft/bluestein"};
  add("no power of two, inverse", {.N = 2, .L = 15, .direction = FftDirection::inverse});
  add_real(list);
  add_to_real(list);
  add_planes(list);
  return list;
}

FftProblem random_fft(Dice& dice) {
  FftProblem p{.ring = dice(0, 2) == 0 ? FftRing::complex : FftRing::mersenne,
               .input = dice(0, 2) == 0 ? FftInput::real : FftInput::complex};
  if (dice(0, 2) == 0) p.direction = FftDirection::inverse;
  const bool any_length = p.ring == FftRing::complex && dice(0, 1) == 0;
  const bool planes = dice(0, 2) == 0;
  if (planes) p.H = any_length ? dice(1, 24) : 1 << dice(0, 5);
  const int longest = planes ? 5 : 10;
  p.L = any_length ? dice(1, planes ? 24 : 200) : 1 << dice(0, longest);
  const int points = p.rows() * p.L;
  p.N = dice(1, 2048 / points < 2 ? 2 : 2048 / points);
  return validated(p);
}

FftProblem to_real(FftProblem p) {
  p.input = FftInput::real;
  p.direction = FftDirection::inverse;
  return p;
}

/// Over the ring in which every equation holds exactly.
std::vector<FftProblem> fft_bases() {
  return {{.N = 3, .L = 8, .ring = FftRing::mersenne, .input = FftInput::real},
          {.N = 4, .L = 32, .ring = FftRing::mersenne, .input = FftInput::real},
          {.N = 2, .H = 4, .L = 8, .ring = FftRing::mersenne},
          {.N = 3, .H = 8, .L = 8, .direction = FftDirection::inverse, .ring = FftRing::mersenne},
          {.N = 2, .H = 16, .L = 8, .ring = FftRing::mersenne},
          {.N = 2, .H = 4, .L = 8, .ring = FftRing::mersenne, .input = FftInput::real},
          to_real({.N = 3, .L = 8, .ring = FftRing::mersenne}),
          to_real({.N = 4, .L = 32, .ring = FftRing::mersenne}),
          to_real({.N = 2, .H = 4, .L = 8, .ring = FftRing::mersenne}),
          {.N = 3, .L = 1, .ring = FftRing::mersenne},
          {.N = 2, .L = 2, .ring = FftRing::mersenne},
          {.N = 3, .L = 8, .ring = FftRing::mersenne},
          {.N = 2, .L = 16, .direction = FftDirection::inverse, .ring = FftRing::mersenne},
          {.N = 2, .L = 64, .ring = FftRing::mersenne},
          {.N = 1, .L = 256, .ring = FftRing::mersenne}};
}

using Point = Complex<Mersenne>;
using Points = std::vector<Point>;  ///< [N][H][L], of lines [N][L]

/// Points of x, or of y as far as the array has them.
Points points_in(const Array& array, bool real) {
  Points points;
  const std::int64_t numbers = real ? 1 : 2;
  for (std::int64_t i = 0; numbers * i < array.size(); ++i) {
    points.push_back(real ? Point{number_from<Mersenne>(floats(array)[at(i)]), {}}
                          : point_of<Mersenne>(floats(array).data(), i, false));
  }
  return points;
}

/// As x has them.
Array array_with(const FftProblem& p, const Points& points) {
  Array array = Array(DType::f32, fft_signature(p).inputs.at(0).shape);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (p.is_real()) {
      array.as<float>()[i] = to_array(points[i].re);
    } else {
      set_point(array.as<float>().data(), static_cast<std::int64_t>(i), false, points[i]);
    }
  }
  return array;
}

/// The same problem of complex points.
FftProblem complex_form_of(FftProblem p) {
  p.input = FftInput::complex;
  return p;
}

/// A point for each of the problem's: of(the first of its line or plane, its row, its number in the
/// row).
template <class Of>
Points made_of(const FftProblem& p, const Of& of) {
  Points points;
  const std::size_t H = at(p.rows()), L = at(p.L);
  for (std::size_t n = 0; n < at(p.N) * H * L; n += H * L) {
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t w = 0; w < L; ++w) points.push_back(of(n, h, w));
    }
  }
  return points;
}

/// All frequencies, of those that y has: of real points, the others are conjugates.
Points all_frequencies(const FftProblem& p, const Points& y) {
  const std::size_t H = at(p.rows()), L = at(p.L), row = at(p.frequencies());
  return made_of(p, [&](std::size_t n, std::size_t u, std::size_t v) {
    const std::size_t plane = n / L * row;  // where its frequencies begin
    if (v < row) return y[plane + u * row + v];
    return conjugate(y[plane + (H - u) % H * row + L - v]);
  });
}

FftProblem turned_round(FftProblem p) {
  p.direction =
      p.direction == FftDirection::forward ? FftDirection::inverse : FftDirection::forward;
  return p;
}

/// The same for transforms to real points.
std::vector<Identity<FftProblem>> to_real_identities(const Subject& f,
                                                     const CheckOptions& options) {
  return {
      {"linear, to real points", is_to_real,
       [&f](const FftProblem& p) {
         const Array x = f.inputs(p).at("x"), more = f.inputs(p, 1).at("x");
         const Array y = f(p, {{"x", x}}).at("y"), y_more = f(p, {{"x", more}}).at("y");
         const auto sum_of = [](const Array& one, const Array& other) {
           Array sum = one;
           for (std::int64_t i = 0; i < sum.size(); ++i) {
             const auto of = [&](const Array& array) {
               return number_from<Mersenne>(floats(array)[at(i)]);
             };
             sum.as<float>()[at(i)] = to_array(of(one) + Mersenne{3} * of(other));
           }
           return sum;
         };
         expect_same(f(p, {{"x", sum_of(x, more)}}).at("y"), sum_of(y, y_more));
       }},
      {"back from the frequencies of real points is those, times the points of a line or plane",
       is_to_real,
       [&](const FftProblem& p) {
         FftProblem forward = p;
         forward.direction = FftDirection::forward;
         const Subject first = first_cpu_rung("fft", options);
         const Array points = first.inputs(forward).at("x");
         const Array y = f(p, {{"x", first(forward, {{"x", points}}).at("y")}}).at("y");
         Array expected = points;
         const Mersenne times = number_from<Mersenne>(static_cast<float>(p.rows() * p.L));
         for (float& value : expected.as<float>())
           value = to_array(times * number_from<Mersenne>(value));
         expect_same(y, expected);
       }},
      {"the real part of what all frequencies give", is_to_real,
       [&](const FftProblem& p) {
         const Array half = f.inputs(p).at("x");
         const FftProblem form = complex_form_of(p);
         const Points all = all_frequencies(p, points_in(half, false));
         const Points z = points_in(
             first_cpu_rung("fft", options)(form, {{"x", array_with(form, all)}}).at("y"), false);
         Array expected(DType::f32, fft_signature(p).outputs.at(0).shape);
         for (std::size_t i = 0; i < z.size(); ++i) expected.as<float>()[i] = to_array(z[i].re);
         expect_same(f(p, {{"x", half}}).at("y"), expected);
       }},
      {"a NaN stays in its plane, or in its pair of real lines, to real points",
       [](const FftProblem& p) { return is_to_real(p) && p.N > 2; },
       [&f](FftProblem p) {
         p.ring = FftRing::complex;
         const Array x = f.inputs(p).at("x");
         Array with_nan = x;
         // Both parts of number 1 of the first one.
         with_nan.as<float>()[2] = with_nan.as<float>()[3] = std::nanf("");
         const Array y = f(p, {{"x", x}}).at("y"), found = f(p, {{"x", with_nan}}).at("y");
         const auto value = floats(y), instead = floats(found);
         const std::size_t of_one = value.size() / at(p.N);
         for (std::size_t i = 0; i < value.size(); ++i) {
           if (!p.has_planes() && i / of_one == 1) continue;
           const bool right = i < of_one ? std::isnan(instead[i]) : instead[i] == value[i];
           if (!right) throw Broken{text("point ", i, " is ", instead[i])};
         }
       }},
  };
}

/// What holds without a look at the definition, but to real points.
std::vector<Identity<FftProblem>> fft_identities(const Subject& f, const CheckOptions& options) {
  // Results are all frequencies, so that real points are like any others.
  const auto y_of = [&f](const FftProblem& p, const Points& x) {
    return all_frequencies(p, points_in(f(p, {{"x", array_with(p, x)}}).at("y"), false));
  };
  const auto x_of = [&f](const FftProblem& p, std::uint64_t salt = 0) {
    return points_in(f.inputs(p, salt).at("x"), p.is_real());
  };
  const auto same = [](const FftProblem& p, const Points& found, const Points& expected) {
    const FftProblem form = complex_form_of(p);
    expect_same(array_with(form, found), array_with(form, expected));
  };
  const auto times_points = [](const FftProblem& p, Point z) {
    const auto points = static_cast<std::uint32_t>(p.rows()) * static_cast<std::uint32_t>(p.L);
    return z * Point{{points % Mersenne::kPrime}, {0}};
  };
  const auto is_complex = [](const FftProblem& p) { return !p.is_real(); };
  return {
      {"linear",
       {},
       [=](const FftProblem& p) {
         const Points x = x_of(p), more = x_of(p, 1);
         const Points y = y_of(p, x), y_more = y_of(p, more);
         const Point a = {{3}, {p.is_real() ? 0u : 5u}};
         const std::size_t L = at(p.L);
         const auto sum_of = [=](const Points& one, const Points& other) {
           return [=, &one, &other](std::size_t n, std::size_t h, std::size_t w) {
             return a * one[n + h * L + w] + other[n + h * L + w];
           };
         };
         same(p, y_of(p, made_of(p, sum_of(x, more))), made_of(p, sum_of(y, y_more)));
       }},
      {"there and back is x, times the points of a line or plane", is_complex,
       [=](const FftProblem& p) {
         const Points x = x_of(p);
         const std::size_t L = at(p.L);
         same(p, y_of(turned_round(p), y_of(p, x)), made_of(p, [&](auto n, auto h, auto w) {
                return times_points(p, x[n + h * L + w]);
              }));
       }},
      {"a cyclic shift by a point along each axis rotates the frequencies (shift)",
       {},
       [=](const FftProblem& p) {
         const Points x = x_of(p), y = y_of(p, x);
         const std::size_t H = at(p.rows()), L = at(p.L);
         // x[h + 1, w + 1]: frequency (u, v) is turned back by u steps and by v steps.
         const auto shifted = made_of(
             p, [&](auto n, auto h, auto w) { return x[n + (h + 1) % H * L + (w + 1) % L]; });
         same(p, y_of(p, shifted), made_of(p, [&](auto n, auto u, auto v) {
                const Point root = root_of_unity<Mersenne>(static_cast<std::int64_t>(u), p.rows()) *
                                   root_of_unity<Mersenne>(static_cast<std::int64_t>(v), p.L);
                return y[n + u * L + v] *
                       (p.direction == FftDirection::forward ? conjugate(root) : root);
              }));
       }},
      {"as much energy, times the points of a line or plane (Parseval)",
       {},
       [=](const FftProblem& p) {
         const Points x = x_of(p), y = y_of(p, x);
         Point before = {}, after = {};
         for (const Point& z : x) before = before + z * conjugate(z);
         for (const Point& z : y) after = after + z * conjugate(z);
         const Point expected = times_points(p, before);
         if (after.re.value != expected.re.value)
           throw Broken{text("energy ", after.re.value, " instead of ", expected.re.value)};
       }},
      {"a convolution's frequencies are products",
       {},
       [=](const FftProblem& p) {
         const Points x = x_of(p), other = x_of(p, 1);
         const Points y = y_of(p, x), y_other = y_of(p, other);
         const std::size_t H = at(p.rows()), L = at(p.L);
         const auto convolution = made_of(p, [&](auto n, auto h, auto w) {
           Point sum = {};
           for (std::size_t i = 0; i < H; ++i) {
             for (std::size_t j = 0; j < L; ++j)
               sum = sum + x[n + i * L + j] * other[n + (h + H - i) % H * L + (w + L - j) % L];
           }
           return sum;
         });
         same(p, y_of(p, convolution), made_of(p, [&](auto n, auto u, auto v) {
                return y[n + u * L + v] * y_other[n + u * L + v];
              }));
       }},
      {"frequencies of real points are each other's conjugates", is_complex,
       [=](const FftProblem& p) {
         Points x = x_of(p);
         for (Point& z : x) z.im = {};
         const Points y = y_of(p, x);
         const std::size_t H = at(p.rows()), L = at(p.L);
         same(p, y, made_of(p, [&](auto n, auto u, auto v) {
                return conjugate(y[n + (H - u) % H * L + (L - v) % L]);
              }));
       }},
      {"real points have the frequencies that they have as complex ones",
       [](const FftProblem& p) { return p.is_real(); },
       [=](const FftProblem& p) {
         const Points x = x_of(p);
         const FftProblem form = complex_form_of(p);
         const Array y = first_cpu_rung("fft", options)(form, {{"x", array_with(form, x)}}).at("y");
         same(p, y_of(p, x), points_in(y, false));
       }},
      {"a transposed plane", [](const FftProblem& p) { return p.has_planes() && !p.is_real(); },
       [=](const FftProblem& p) {
         FftProblem turned = p;
         std::swap(turned.H, turned.L);
         const std::size_t L = at(p.L);
         const auto over_diagonal = [&](const Points& points) {
           return made_of(turned, [&](auto n, auto h, auto w) { return points[n + w * L + h]; });
         };
         const Points x = x_of(p);
         same(turned, y_of(turned, over_diagonal(x)), over_diagonal(y_of(p, x)));
       }},
      {"a line or plane alone", [](const FftProblem& p) { return p.N > 1; },
       [=](const FftProblem& p) {
         const Points x = x_of(p), y = y_of(p, x);
         FftProblem one = p;
         one.N = 1;
         const auto begin = static_cast<std::ptrdiff_t>(one.points());
         same(one, y_of(one, Points(x.begin() + begin, x.begin() + 2 * begin)),
              Points(y.begin() + begin, y.begin() + 2 * begin));
       }},
      {"a NaN stays in its line or plane, or in its pair of real lines",
       [](const FftProblem& p) { return p.N > (p.is_real() ? 2 : 1); },
       [&f](FftProblem p) {
         p.ring = FftRing::complex;
         const Array x = f.inputs(p).at("x");
         Array with_nan = x;
         // In the middle of the first one.
         with_nan.as<float>()[at(x.size() / p.N / 2)] = std::nanf("");
         const Array y = f(p, {{"x", x}}).at("y"), found = f(p, {{"x", with_nan}}).at("y");
         const auto value = floats(y), instead = floats(found);
         const std::size_t of_one = value.size() / at(p.N);
         for (std::size_t i = 0; i < value.size(); i += 2) {
           if (p.is_real() && !p.has_planes() && i / of_one == 1) continue;
           const bool right = i < of_one ? std::isnan(instead[i]) || std::isnan(instead[i + 1])
                                         : instead[i] == value[i] && instead[i + 1] == value[i + 1];
           if (!right)
             throw Broken{text("point ", i / 2, " is ", instead[i], ", ", instead[i + 1])};
         }
       }},
  };
}

std::vector<Identity<FftProblem>> all_identities(const Subject& f, const CheckOptions& options) {
  std::vector<Identity<FftProblem>> all = fft_identities(f, options);
  for (Identity<FftProblem>& identity : all) {
    identity.applies = [applies = identity.applies](const FftProblem& p) {
      return !is_to_real(p) && (!applies || applies(p));
    };
  }
  for (Identity<FftProblem>& identity : to_real_identities(f, options))
    all.push_back(std::move(identity));
  return all;
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
  list.emplace_back(validated(FftProblem{.N = kLargestInt, .L = 4096, .input = FftInput::real}));
  list.emplace_back(validated(FftProblem{.N = kLargestInt, .L = 1, .input = FftInput::real}));
  list.emplace_back(validated(to_real({.N = kLargestInt, .L = 4096})));
  list.emplace_back(validated(to_real({.N = kLargestInt, .L = 1})));
  for (const auto& [n, rows, length] : {std::tuple{kLargestInt, 64, 64},
                                        {kLargestInt, 1024, 1024},
                                        {1, kLargestInt, kLargestInt},
                                        {1, 1 << 30, 1 << 30}})
    list.emplace_back(validated(FftProblem{.N = n, .H = rows, .L = length}));
  return list;
}

}  // namespace

LadderTests fft_tests() {
  return {fft_problems,
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_fft(dice); });
          },
          {},
          checked<FftProblem>(all_identities, fft_bases),
          fft_limits};
}

}  // namespace convladder::testing
