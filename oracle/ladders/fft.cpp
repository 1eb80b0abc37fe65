/// @file fft.cpp
/// @brief Definition of fft: recursive from the whole line down to its odd part, whereas the rungs
/// with passes start from single points.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/fft_to_real.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace fft {
namespace {

/// a + b i with integers modulo 2^17 - 1.
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
  const auto modulo = [](float part) {  // exact, whatever the size
    const auto rest = static_cast<std::int64_t>(std::fmod(part, static_cast<float>(Whole::kPrime)));
    return (rest + Whole::kPrime) % Whole::kPrime;
  };
  to = {modulo(re), modulo(im)};
}
void set(Number& to, float re, float im) { to = {double{re}, double{im}}; }

Whole real_part(Whole z) { return {z.re, 0}; }
Number real_part(Number z) { return {z.real(), 0}; }

/// w^0 ... w^(length-1). The w of the inverse is the conjugate of the forward one in both rings.
std::vector<Number> roots_of(FftDirection direction, int length, Number) {
  const double step = (direction == FftDirection::forward ? -2 : 2) * std::numbers::pi / length;
  std::vector<Number> roots;
  for (int k = 0; k < length; ++k) roots.push_back(std::polar(1.0, step * k));
  return roots;
}
std::vector<Whole> roots_of(FftDirection direction, int length, Whole) {
  // A root of order 2^17 whose 2^15th power is -i; its square has half the order, and so on.
  Whole w = {29, direction == FftDirection::forward ? 3318 : Whole::kPrime - 3318};
  for (int order = kLongestMersenneLine; order > length; order /= 2) w = w * w;
  std::vector<Whole> roots = {{1, 0}};
  while (static_cast<int>(roots.size()) < length) roots.push_back(roots.back() * w);
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

/// Lines or planes, and the parameters of their transform.
template <class Z>
class Transform {
 public:
  /// @param x the problem's
  Transform(const FftProblem& p, std::span<const float> x)
      : p_(p), x_(x), roots_(roots_of(p.direction, p.L, Z{})),
        roots_of_columns_(roots_of(p.direction, p.rows(), Z{})) {}

  /// All frequencies of line n, or of plane n, including those that y omits for real lines.
  std::vector<Z> operator()(std::int64_t n) const {
    const std::size_t H = roots_of_columns_.size(), L = roots_.size();
    const std::size_t first = static_cast<std::size_t>(n) * H * L;
    std::vector<Z> spectrum(H * L), row(L), column(H);
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t w = 0; w < L; ++w) {
        const std::size_t i = first + h * L + w;
        if (is_to_real(p_)) {
          row[w] = frequency(static_cast<std::size_t>(n) * H, h, w);
        } else if (p_.is_real()) {
          set(row[w], x_[i], 0);
        } else {
          set(row[w], x_[2 * i], x_[2 * i + 1]);
        }
      }
      std::ranges::copy(transform(row, 0, 1, roots_),
                        spectrum.begin() + static_cast<std::ptrdiff_t>(h * L));
    }
    for (std::size_t v = 0; v < L; ++v) {
      for (std::size_t h = 0; h < H; ++h) column[h] = spectrum[h * L + v];
      const std::vector<Z> transformed = transform(column, 0, 1, roots_of_columns_);
      for (std::size_t u = 0; u < H; ++u) spectrum[u * L + v] = transformed[u];
    }
    if (is_to_real(p_)) {
      for (Z& z : spectrum) z = real_part(z);
    }
    return spectrum;
  }

 private:
  /// Frequency (u, v), of which x holds half: the others are conjugates. @param row the plane's
  Z frequency(std::size_t row, std::size_t u, std::size_t v) const {
    const std::size_t H = roots_of_columns_.size(), L = roots_.size(), half = L / 2 + 1;
    const std::size_t i = v < half ? (row + u) * half + v : (row + (H - u) % H) * half + L - v;
    Z z;
    set(z, x_[2 * i], v < half ? x_[2 * i + 1] : -x_[2 * i + 1]);
    return z;
  }

  FftProblem p_;
  std::span<const float> x_;
  std::vector<Z> roots_, roots_of_columns_;
};

/// The largest finite output of a line or plane.
template <class Z>
double largest(const std::vector<Z>& spectrum) {
  double result = 0;
  for (const Z& z : spectrum) {
    const double size = std::hypot(real(z), imag(z));
    if (std::isfinite(size)) result = std::max(result, size);
  }
  return result;
}

/// Whether two lines may be transformed as one.
bool has_pairs(const FftProblem& p) { return p.is_real() && !p.has_planes(); }

/// The value that bounds the rounding of the outputs of line n or plane n: their largest magnitude
/// or, because real lines 2 i and 2 i + 1 may be transformed as a + b i, the larger one of both
/// lines.
/// @param largest_of(m): that of another line
template <class Of>
double magnitude_of(const FftProblem& p, std::int64_t n, const Of& largest_of) {
  const std::int64_t other = n ^ 1;
  return largest_of(n) + (has_pairs(p) && other < p.N ? largest_of(other) : 0);
}

template <class Z>
void transform_all(const FftProblem& p, std::span<const float> x, Expected& y) {
  const Transform<Z> transform(p, x);
  const auto L = static_cast<std::size_t>(p.L), H = static_cast<std::size_t>(p.rows()),
             frequencies = static_cast<std::size_t>(p.frequencies());
  std::vector<double> most(static_cast<std::size_t>(p.N));
  parallel_for(p.N, [&](std::int64_t n) {
    const std::vector<Z> spectrum = transform(n);
    most[static_cast<std::size_t>(n)] = largest(spectrum);
    if (is_to_real(p)) {
      for (std::size_t i = 0; i < H * L; ++i)
        y.values[static_cast<std::size_t>(n) * H * L + i] = real(spectrum[i]);
      return;
    }
    std::size_t at = 2 * static_cast<std::size_t>(n) * H * frequencies;
    for (std::size_t u = 0; u < H; ++u) {
      for (std::size_t v = 0; v < frequencies; ++v, at += 2) {
        y.values[at] = real(spectrum[u * L + v]);
        y.values[at + 1] = imag(spectrum[u * L + v]);
      }
    }
  });
  for (std::size_t i = 0; i < y.magnitude.size(); ++i) {
    y.magnitude[i] = magnitude_of(
        p, static_cast<std::int64_t>(i / (is_to_real(p) ? H * L : 2 * H * frequencies)),
        [&](std::int64_t n) { return most[static_cast<std::size_t>(n)]; });
  }
}

/// For a line or plane over the complex numbers; modulo a prime, numbers do not grow.
std::int64_t longest_sum(const FftProblem& p) {
  return p.ring == FftRing::complex ? 2 * std::int64_t{p.rows()} * p.L : 1;
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
  const std::int64_t output = is_to_real(p) ? place : place / 2;
  const std::int64_t in_row = is_to_real(p) ? p.L : p.frequencies(), v = output % in_row;
  const std::int64_t row = output / in_row, u = row % p.rows(), n = row / p.rows();
  const auto of_spectrum = [&]<class Z>(Z) {
    const Transform<Z> transform(p, x);
    const std::vector<Z> spectrum = transform(n);
    const auto largest_of = [&](std::int64_t m) {
      return m == n ? largest(spectrum) : largest(transform(m));
    };
    const Z& z = spectrum[static_cast<std::size_t>(u * p.L + v)];
    return ExpectedElement{is_to_real(p) || place % 2 == 0 ? real(z) : imag(z),
                           p.ring == FftRing::complex ? magnitude_of(p, n, largest_of) : 0};
  };
  return p.ring == FftRing::complex ? of_spectrum(Number{}) : of_spectrum(Whole{});
}

}  // namespace
}  // namespace fft

Definition fft_definition() {
  return define<FftProblem>(
      {.longest_sum = fft::longest_sum, .outputs = fft::outputs, .element = fft::element});
}

}  // namespace convladder::oracle
