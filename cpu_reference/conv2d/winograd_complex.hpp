/// @file winograd_complex.hpp
/// @brief The transforms of F(4 x 4, 3 x 3) over the points 0, 1, -1, i, -i and infinity, and its
/// 46 products; see winograd_complex.cpp.
#pragma once

#include <array>
#include <cstddef>

#include "core/complex.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"

namespace convladder::cpu_reference::conv2d {

/// A tile of 4 x 4 outputs.
class ComplexTile {
 public:
  static constexpr int kM = 4, kN = 6;  ///< Outputs of a tile, and elements of a line of its
                                        ///< window.
  static constexpr int kProducts = 46;  ///< Products of a tile.

  /// The operands that a window d [6][6] contributes: its values and, for complex values, three
  /// operands each.
  static void window(const float* d, float* v) {
    float values[kN * kN];
    both_sides(kB, d, values);
    const auto three = [&](float a, float b) { *v++ = a + b, *v++ = a, *v++ = b; };
    for_each_value([&](int place) { *v++ = values[place]; },
                   [&](int re, int im) { three(values[re], values[im]); });
    for (const auto& value : values_at_pairs(values)) three(value.re, value.im);
  }

  /// The operands that a filter g [3][3] contributes, rounded once.
  static void filter(const double* g, float* u) {
    double values[kN * kN];
    both_sides(kG, g, values);
    const auto three = [&](double c, double d) {
      for (const double factor : {c, d - c, c + d}) *u++ = static_cast<float>(factor);
    };
    for_each_value([&](int place) { *u++ = static_cast<float>(values[place]); },
                   [&](int re, int im) { three(values[re], values[im]); });
    for (const auto& value : values_at_pairs(values)) three(value.re, value.im);
  }

  /// From accumulated products to outputs y [4][4].
  static void outputs(const float* m, float* y) {
    float values[kN * kN];
    const auto number = [&] {
      const float k1 = *m++, k2 = *m++, k3 = *m++;
      return Complex<float>{k1 - k3, k1 + k2};
    };
    for_each_value([&](int place) { values[place] = *m++; },
                   [&](int re, int im) {
                     const Complex<float> value = number();
                     values[re] = value.re, values[im] = value.im;
                   });
    const Complex<float> same = number(), other = number();  // at (i, i) and at (i, -i)
    values[kRe * kN + kRe] = (same.re + other.re) / 2;
    values[kIm * kN + kIm] = (other.re - same.re) / 2;
    values[kRe * kN + kIm] = (same.im - other.im) / 2;
    values[kIm * kN + kRe] = (same.im + other.im) / 2;
    both_sides(kA, values, y);
  }

 private:
  template <class T, std::size_t kRows, std::size_t kColumns>
  using Matrix = std::array<std::array<T, kColumns>, kRows>;
  static constexpr int kReal[] = {0, 1, 2, 5};  // values at real points
  static constexpr int kRe = 3, kIm = 4;        // the value at i
  static constexpr Matrix<float, kN, kN> kB = {{{-1, 0, 0, 0, 1, 0},
                                                {0, 1, 1, 1, 1, 0},
                                                {0, -1, 1, -1, 1, 0},
                                                {0, 0, -1, 0, 1, 0},
                                                {0, -1, 0, 1, 0, 0},
                                                {0, -1, 0, 0, 0, 1}}};
  static constexpr Matrix<double, kN, 3> kG = {
      {{-1, 0, 0}, {.25, .25, .25}, {.25, -.25, .25}, {.25, 0, -.25}, {0, .25, 0}, {0, 0, 1}}};
  static constexpr Matrix<float, kM, kN> kA = {
      {{1, 1, 1, 2, 0, 0}, {0, 1, -1, 0, -2, 0}, {0, 1, 1, -2, 0, 0}, {0, 1, -1, 0, 2, 1}}};

  /// Visits a window's 6 x 6 values: calls real(place) for values at two real points, and pair(re,
  /// im) with the positions of both parts of values at a real point and i.
  template <class Real, class Pair>
  static void for_each_value(const Real& real, const Pair& pair) {
    for (const int i : kReal) {
      for (const int j : kReal) real(i * kN + j);
      pair(i * kN + kRe, i * kN + kIm);
      pair(kRe * kN + i, kIm * kN + i);
    }
  }

  /// The values at (i, i) and at (i, -i).
  template <class T>
  static std::array<Complex<T>, 2> values_at_pairs(const T* values) {
    const T rr = values[kRe * kN + kRe], ri = values[kRe * kN + kIm];
    const T ir = values[kIm * kN + kRe], ii = values[kIm * kN + kIm];
    return {{{rr - ii, ri + ir}, {rr + ii, ir - ri}}};
  }
};

}  // namespace convladder::cpu_reference::conv2d
