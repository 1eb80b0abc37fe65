/// @file winograd_matrices.hpp
/// @brief The matrices of F(m, r), m outputs of a filter of r taps with m + r - 1 products,
/// computed at compile time from a few points in exact fractions.
///
/// A correlation along a line is the transpose of a polynomial multiplication (Winograd,
/// "Arithmetic complexity of computations", 1980). Polynomials are multiplied by evaluation and
/// interpolation: evaluate both operands at n - 1 points and at infinity, multiply the values,
/// interpolate (Toom 1963, Cook 1966). With M(x) = prod (x - a_l) and L_j(x) = M(x) / (x - a_j):
///
///     A^T[i][j] = a_j^i                the points' powers       and at infinity 1 for the last i
///     G[j][i]   = a_j^i / L_j(a_j)                              and at infinity 1 for the last i
///     B^T[j]    = the coefficients of L_j                       and at infinity those of M
///
/// The program wincnn (A. Lavin) computes the same matrices with a computer algebra system.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace convladder::cpu_reference::conv2d {

/// An exact fraction in lowest terms with a positive denominator.
struct Fraction {
  std::int64_t over = 0, under = 1;  ///< over / under

  constexpr Fraction() = default;
  /// over / under. @param under_ not 0
  constexpr Fraction(std::int64_t over_, std::int64_t under_ = 1) : over(over_), under(under_) {
    const std::int64_t common = std::gcd(over, under) * (under < 0 ? -1 : 1);
    over /= common;
    under /= common;
  }
  friend constexpr Fraction operator+(Fraction a, Fraction b) {
    return {a.over * b.under + b.over * a.under, a.under * b.under};
  }
  friend constexpr Fraction operator-(Fraction a, Fraction b) { return a + Fraction(-1) * b; }
  friend constexpr Fraction operator*(Fraction a, Fraction b) {
    return {a.over * b.over, a.under * b.under};
  }
  friend constexpr Fraction operator/(Fraction a, Fraction b) {
    return {a.over * b.under, a.under * b.over};
  }
  friend constexpr bool operator==(Fraction, Fraction) = default;
  /// The nearest value of the type.
  constexpr explicit operator double() const {
    return static_cast<double>(over) / static_cast<double>(under);
  }
};

/// y = A^T [(G g) .* (B^T d)]: y [kM] of g [kR] and d [kN].
template <int kM_, int kR_>
struct WinogradMatrices {
  static constexpr int kM = kM_, kR = kR_, kN = kM + kR - 1;  ///< outputs, taps, products
  std::array<std::array<Fraction, kN>, kM> at = {};           ///< A^T
  std::array<std::array<Fraction, kR>, kN> g = {};            ///< G
  std::array<std::array<Fraction, kN>, kN> bt = {};           ///< B^T
};

/// F(kM, kR) from kM + kR - 2 different points; infinity is the last one.
template <int kM, int kR>
constexpr WinogradMatrices<kM, kR> winograd_matrices(
    const std::array<Fraction, kM + kR - 2>& points) {
  constexpr std::size_t kN = kM + kR - 1;
  WinogradMatrices<kM, kR> matrices;
  /// The coefficients of prod (x - a_l) over all points but one; over all points if `one` is not a
  /// point.
  const auto product_without = [&](std::size_t left_out) {
    std::array<Fraction, kN> coefficients = {};
    coefficients[0] = 1;
    for (std::size_t l = 0; l < points.size(); ++l) {
      if (l == left_out) continue;
      for (std::size_t i = kN; i-- > 0;) {  // times x, less a_l times itself
        const Fraction below = i > 0 ? coefficients[i - 1] : Fraction();
        coefficients[i] = below - points[l] * coefficients[i];
      }
    }
    return coefficients;
  };
  for (std::size_t j = 0; j + 1 < kN; ++j) {
    matrices.bt[j] = product_without(j);
    Fraction value, power = 1;  // L_j(a_j)
    for (std::size_t i = 0; i < kN; ++i, power = power * points[j])
      value = value + matrices.bt[j][i] * power;
    power = 1;
    for (std::size_t i = 0; i < kM; ++i, power = power * points[j]) matrices.at[i][j] = power;
    power = 1;
    for (std::size_t i = 0; i < kR; ++i, power = power * points[j])
      matrices.g[j][i] = power / value;
  }
  matrices.bt[kN - 1] = product_without(points.size());
  matrices.at[kM - 1][kN - 1] = 1;
  matrices.g[kN - 1][kR - 1] = 1;
  return matrices;
}

/// Whether A^T [(G g) .* (B^T d)] equals the sum of products for all g and d. Both are bilinear, so
/// unit vectors g and d suffice.
template <int kM, int kR>
constexpr bool is_exact(const WinogradMatrices<kM, kR>& matrices) {
  for (std::size_t i = 0; i < kM; ++i) {
    for (std::size_t r = 0; r < kR; ++r) {
      for (std::size_t d = 0; d < kM + kR - 1; ++d) {
        Fraction y;
        for (std::size_t j = 0; j < kM + kR - 1; ++j)
          y = y + matrices.at[i][j] * matrices.g[j][r] * matrices.bt[j][d];
        if (y != Fraction(d == i + r ? 1 : 0)) return false;
      }
    }
  }
  return true;
}

/// A matrix in another type, scaled by `scale`. Its elements are exact in that type.
template <class T, std::size_t kRows, std::size_t kColumns>
constexpr auto in_type(const std::array<std::array<Fraction, kColumns>, kRows>& matrix, int scale) {
  std::array<std::array<T, kColumns>, kRows> numbers = {};
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j)
      numbers[i][j] = static_cast<T>(double{matrix[i][j] * Fraction(scale)});
  return numbers;
}

/// to = matrix * from * matrix^T, row-major.
template <class T, std::size_t kRows, std::size_t kColumns>
void both_sides(const std::array<std::array<T, kColumns>, kRows>& matrix, const T* from, T* to) {
  T half[kRows][kColumns];
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kColumns; ++j) {
      half[i][j] = 0;
      for (std::size_t l = 0; l < kColumns; ++l)
        half[i][j] += matrix[i][l] * from[l * kColumns + j];
    }
    for (std::size_t j = 0; j < kRows; ++j, ++to) {
      *to = 0;
      for (std::size_t l = 0; l < kColumns; ++l) *to += half[i][l] * matrix[j][l];
    }
  }
}

}  // namespace convladder::cpu_reference::conv2d
