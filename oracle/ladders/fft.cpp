/// @file fft.cpp
/// @brief The discrete Fourier transform: from the whole line down to odd parts of it, where the
/// rungs that pass over a line go from points up.
#include <algorithm>
#include <complex>
#include <numbers>

#include "core/fft_problem.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace fft {
namespace {

/// a + b i with whole numbers modulo 2^17 - 1.
struct Whole {
  std::int64_t re = 0, im = 0;

  static constexpr std::int64_t kPrime = (1 << 17) - 1;
  friend Whole operator+(Whole a, Whole b) {
    return {(a.re + b.re) % kPrime, (a.im + b.im) % kPrime};
  }
  friend Whole operator*(Whole a, Whole b) {
    return {(a.re * b.re + (kPrime - a.im) * b.im) % kPrime, (a.re * b.im + a.im * b.re) % kPrime};
  }
};

using Number = std::complex<double>;

double real(Whole z) { return static_cast<double>(z.re); }
double imag(Whole z) { return static_cast<double>(z.im); }
double real(Number z) { return z.real(); }
double imag(Number z) { return z.imag(); }

void set(Whole& to, float re, float im) {
  const auto modulo = [](float part) {
    return (static_cast<std::int64_t>(part) % Whole::kPrime + Whole::kPrime) % Whole::kPrime;
  };
  to = {modulo(re), modulo(im)};
}
void set(Number& to, float re, float im) { to = {double{re}, double{im}}; }

/// w^0 ... w^(L-1). The inverse's w is the forward one's conjugate in both rings.
std::vector<Number> roots_of(const FftProblem& p, Number) {
  const double step = (p.direction == FftDirection::forward ? -2 : 2) * std::numbers::pi / p.L;
  std::vector<Number> roots;
  for (int k = 0; k < p.L; ++k) roots.push_back(std::polar(1.0, step * k));
  return roots;
}
std::vector<Whole> roots_of(const FftProblem& p, Whole) {
  // A root of order 2^17 whose 2^15th power is -i; its square has half the order, and so on.
  Whole w = {29, p.direction == FftDirection::forward ? 3318 : Whole::kPrime - 3318};
  for (int order = kLongestMersenneLine; order > p.L; order /= 2) w = w * w;
  std::vector<Whole> roots = {{1, 0}};
  while (static_cast<int>(roots.size()) < p.L) roots.push_back(roots.back() * w);
  return roots;
}

/// The transform of x[0], x[step], x[2 step] ...: `length` points. @param roots of the whole line
template <class Z>
std::vector<Z> transform(const std::vector<Z>& x, std::size_t begin, std::size_t step,
                         const std::vector<Z>& roots) {
  const std::size_t length = x.size() / step;
  std::vector<Z> y(length);
  if (length % 2 == 0) {
    const std::vector<Z> even = transform(x, begin, 2 * step, roots);
    const std::vector<Z> odd = transform(x, begin + step, 2 * step, roots);
    for (std::size_t k = 0; k < length; ++k)
      y[k] = even[k % even.size()] + roots[k * step] * odd[k % odd.size()];
    return y;
  }
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t j = 0; j < length; ++j)
      y[k] = y[k] + roots[j * k % length * step] * x[begin + j * step];
  }
  return y;
}

/// Line n's transform.
template <class Z>
std::vector<Z> line(std::span<const float> x, std::int64_t n, const std::vector<Z>& roots) {
  std::vector<Z> points(roots.size());
  for (std::size_t j = 0; j < points.size(); ++j) {
    const std::size_t at = 2 * (static_cast<std::size_t>(n) * points.size() + j);
    set(points[j], x[at], x[at + 1]);
  }
  return transform(points, 0, 1, roots);
}

/// What each output's rounding is bounded by: the largest of the line.
template <class Z>
double largest(const std::vector<Z>& y) {
  double result = 0;
  for (const Z& z : y) result = std::max(result, std::hypot(real(z), imag(z)));
  return result;
}

template <class Z>
void transform_all(const FftProblem& p, std::span<const float> x, Expected& y) {
  const std::vector<Z> roots = roots_of(p, Z{});
  parallel_for(p.N, [&](std::int64_t n) {
    const std::vector<Z> points = line(x, n, roots);
    const double most = largest(points);
    auto at = 2 * static_cast<std::size_t>(n) * points.size();
    for (const Z& z : points) {
      y.values[at] = real(z);
      y.values[at + 1] = imag(z);
      if (!y.magnitude.empty()) y.magnitude[at] = y.magnitude[at + 1] = most;
      at += 2;
    }
  });
}

/// Of a line over the complex numbers; modulo a prime, numbers do not grow.
std::int64_t longest_sum(const FftProblem& p) {
  return p.ring == FftRing::complex ? 2 * std::int64_t{p.L} : 1;
}

std::vector<Expected> outputs(const FftProblem& p, const Arrays& inputs) {
  const auto x = inputs.at("x").as<float>();
  const bool rounds = p.ring == FftRing::complex;
  Expected y = expected_for(fft_signature(p).outputs[0], longest_sum(p), rounds);
  if (rounds) {
    y.passes = p.passes();
    transform_all<Number>(p, x, y);
  } else {
    transform_all<Whole>(p, x, y);
  }
  return {y};
}

ExpectedElement element(const FftProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto x = inputs.at("x").as<float>();
  const std::int64_t point = place / 2, n = point / p.L;
  const auto k = static_cast<std::size_t>(point % p.L);
  const auto of_line = [&]<class Z>(Z) {
    const std::vector<Z> y = line(x, n, roots_of(p, Z{}));
    return ExpectedElement{place % 2 == 0 ? real(y[k]) : imag(y[k]),
                           p.ring == FftRing::complex ? largest(y) : 0};
  };
  return p.ring == FftRing::complex ? of_line(Number{}) : of_line(Whole{});
}

}  // namespace
}  // namespace fft

Definition fft_definition() {
  return define<FftProblem>(
      {.longest_sum = fft::longest_sum, .outputs = fft::outputs, .element = fft::element});
}

}  // namespace convladder::oracle
