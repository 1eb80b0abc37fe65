/// @file complex.hpp
/// @brief Complex numbers over float, or over integers modulo a prime: the same arithmetic, so that
/// a transform can be tested exactly.
///
/// The roots of unity in float are rounded, so no transform by them is exact. Modulo the Mersenne
/// prime p = 2^17 - 1 they are integers: -1 has no square root there, so a + b i behaves like a
/// complex number, and the p + 1 = 2^17 numbers with a^2 + b^2 = 1 form a circle, a cyclic group
/// with one generator. Quarter rotations are 1, -i, -1 and i in both rings; an eighth is (1 - i) r
/// with r^2 = 1/2, where r is 0.7071... or 2^8, because 2 * 2^16 = 2^17 = 1. All operations on
/// complex numbers thus have exact counterparts. (Reed and Truong, "The use of finite fields to
/// compute convolutions", 1975.)
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "core/fft_problem.hpp"

namespace convladder {

/// An integer modulo 2^17 - 1. A float represents all of them.
struct Mersenne {
  static constexpr int kBits = 17;                                          ///< Bits of the prime.
  static constexpr std::uint32_t kPrime = (std::uint32_t{1} << kBits) - 1;  ///< 131071

  std::uint32_t value = 0;  ///< 0 ... kPrime - 1

  HOST_DEVICE friend constexpr Mersenne operator+(Mersenne a, Mersenne b) {
    return folded(a.value + b.value);
  }
  HOST_DEVICE friend constexpr Mersenne operator-(Mersenne a, Mersenne b) {
    return folded(a.value + (kPrime - b.value));
  }
  HOST_DEVICE friend constexpr Mersenne operator*(Mersenne a, Mersenne b) {
    const std::uint64_t product = std::uint64_t{a.value} * b.value;
    // 2^17 is 1, so the bits above the lowest 17 are added to them.
    return folded(static_cast<std::uint32_t>((product & kPrime) + (product >> kBits)));
  }
  HOST_DEVICE friend constexpr Mersenne operator-(Mersenne a) { return folded(kPrime - a.value); }

 private:
  /// @param sum below 2 * kPrime
  HOST_DEVICE static constexpr Mersenne folded(std::uint32_t sum) {
    return {sum >= kPrime ? sum - kPrime : sum};
  }
};

/// A complex number: re + im i, i^2 = -1. @tparam T float, double or Mersenne
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;  ///< Real and imaginary part.

  HOST_DEVICE friend constexpr Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  HOST_DEVICE friend constexpr Complex operator-(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  HOST_DEVICE friend constexpr Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

/// -i z: a quarter rotation, without a multiplication.
template <class T>
HOST_DEVICE constexpr Complex<T> quarter_turn(Complex<T> z) {
  return {z.im, -z.re};
}

/// a - b i.
template <class T>
HOST_DEVICE constexpr Complex<T> conjugate(Complex<T> z) {
  return {z.re, -z.im};
}

/// z / 2. Over Mersenne, one half is 2^16, because 2 * 2^16 = 2^17 = 1.
template <class T>
HOST_DEVICE constexpr Complex<T> halved(Complex<T> z) {
  if constexpr (std::is_same_v<T, Mersenne>) {
    constexpr Mersenne kHalf = {1 << 16};
    return {kHalf * z.re, kHalf * z.im};
  } else {
    constexpr T kHalf = static_cast<T>(0.5);
    return {kHalf * z.re, kHalf * z.im};
  }
}

/// The square root of 1/2.
template <class T>
HOST_DEVICE constexpr T root_of_half() {
  if constexpr (std::is_same_v<T, Mersenne>) {
    return {1 << 8};
  } else {
    return static_cast<T>(0.70710678118654752440);
  }
}

/// An eighth rotation: z (1 - i) / sqrt(2).
template <class T>
HOST_DEVICE constexpr Complex<T> eighth_turn(Complex<T> z) {
  return {root_of_half<T>() * (z.re + z.im), root_of_half<T>() * (z.im - z.re)};
}

/// A real or imaginary part from its representation in an array. @param x over Mersenne an integer,
/// |x| <= 2^24
template <class T>
HOST_DEVICE T number_from(float x) {
  if constexpr (std::is_same_v<T, Mersenne>) {
    const int rest = static_cast<int>(x) % static_cast<int>(Mersenne::kPrime);
    return {
        static_cast<std::uint32_t>(rest < 0 ? rest + static_cast<int>(Mersenne::kPrime) : rest)};
  } else {
    return x;
  }
}

/// The inverse conversion.
HOST_DEVICE inline float to_array(float x) { return x; }
/// The inverse conversion.
HOST_DEVICE inline float to_array(Mersenne x) { return static_cast<float>(x.value); }

/// z, or i times its conjugate: an inverse transform is a forward transform between two such
/// exchanges of the parts.
template <class T>
HOST_DEVICE constexpr Complex<T> exchanged_if(bool exchange, Complex<T> z) {
  return exchange ? Complex<T>{z.im, z.re} : z;
}

/// Point i of an array [..][2]. @param exchange see exchanged_if()
template <class T>
HOST_DEVICE Complex<T> point_of(const float* x, std::int64_t i, bool exchange) {
  return exchanged_if(exchange, Complex<T>{number_from<T>(x[2 * i]), number_from<T>(x[2 * i + 1])});
}

/// Point i of a transform's input: an array [..][2], or [..] if it is real.
template <class T>
HOST_DEVICE Complex<T> input_point(const FftProblem& fft, const float* x, std::int64_t i) {
  if (fft.is_real()) return {number_from<T>(x[i]), number_from<T>(0)};
  return point_of<T>(x, i, fft.exchanges());
}

/// Sets point i of an array [..][2].
template <class T>
HOST_DEVICE void set_point(float* y, std::int64_t i, bool exchange, Complex<T> z) {
  const Complex<T> point = exchanged_if(exchange, z);
  y[2 * i] = to_array(point.re);
  y[2 * i + 1] = to_array(point.im);
}

/// exp(-2 pi i k / n): the position after k of n steps clockwise around the circle from 1. Rounded
/// once, and exact at quarters. @param k 0 ... n - 1 @param n over Mersenne a divisor of 2^17
template <class T>
HOST_DEVICE Complex<T> root_of_unity(std::int64_t k, std::int64_t n) {
  if constexpr (std::is_same_v<T, Mersenne>) {
    Complex<T> root = {{1}, {0}};
    Complex<T> power = {{29}, {3318}};  // generates the circle; its 2^15th power is -i
    for (std::int64_t steps = k * (kLongestMersenneLine / n); steps > 0; steps /= 2) {
      if (steps % 2 != 0) root = root * power;
      power = power * power;
    }
    return root;
  } else {
    const std::int64_t quarters = 4 * k / n, rest = 4 * k - quarters * n;
    const double angle =
        1.57079632679489661923 * static_cast<double>(rest) / static_cast<double>(n);
    Complex<double> root = {std::cos(angle), -std::sin(angle)};
    for (std::int64_t q = 0; q < quarters; ++q) root = quarter_turn(root);
    return {static_cast<T>(root.re), static_cast<T>(root.im)};
  }
}

/// The accumulators for long sums of T: double, so that a sum of many terms is rounded only once.
template <class T>
struct SumOf {
  using Type = T;  ///< Of the sum.
};
/// Of floats.
template <>
struct SumOf<float> {
  using Type = double;  ///< Of the sum.
};

/// Converts an element to the accumulator's type, exactly.
template <class T>
HOST_DEVICE constexpr auto widened(Complex<T> z) {
  using Sum = typename SumOf<T>::Type;
  return Complex<Sum>{Sum{z.re}, Sum{z.im}};
}

/// A rounded accumulator.
template <class T, class Sum>
HOST_DEVICE constexpr Complex<T> narrowed(Complex<Sum> z) {
  return {static_cast<T>(z.re), static_cast<T>(z.im)};
}

/// Calls body(T{}) with the number type of a ring.
template <class Body>
decltype(auto) with_numbers_of(FftRing ring, const Body& body) {
  return ring == FftRing::mersenne ? body(Mersenne{}) : body(float{});
}

}  // namespace convladder
