/// @file winograd_points.cpp
/// @brief conv2d by F(4 x 4, 3 x 3) with points that round less: 0, 1, -1, 1/2 and -2.
///
/// - Before: winograd_4x4.cpp
/// - After: winograd_complex.cpp
///
/// **The idea.** Which points a tile has is free, and its rounding follows from them. With 2 and -2
/// there are eights in A and fives in B; a point and its negative reciprocal share them out, an
/// eighth here and an eight there (Barabasz and others, "Error analysis and improving the accuracy
/// of Winograd convolution for deep neural networks", 2020). It is as many products.
///
/// G has fifteenths now. 15 G would do for 3 G, but then sums are 225 times as large as y, and
/// leave whole numbers little room. So each row of G is multiplied by what makes it whole, and the
/// column of A that meets it is divided. All of them have 15 in common:
///
///          1  0  0                 1   1/3   1/3   4/15  1/15  0           y0 = m0 + [5 (m1 + m2)
///          1  1  1                 0   1/3  -1/3   2/15 -2/15  0                + 4 m3 + m4] / 15
///     G = -1  1 -1          A^T =  0   1/3   1/3   1/15  4/15  0           ...
///         -4 -2 -1                 0   1/3  -1/3   1/30 -8/15  1
///          1 -2  4
///          0  0  1          down, then across: each time the bracket is 15 times a whole number
///
/// Down is the convolution of columns that are already transformed across: whole as those are, but
/// for halves. So what is divided by 15 divides evenly, and numbers are small again.
///
/// **Expect.** The products of winograd_4x4, two thirds of its rounding on average, and less than
/// half of its largest error.
/// **Costs.** 40 divisions a tile instead of 16. Otherwise as winograd_4x4.
/// **Try.** Which points do as well for F(3 x 3, 3 x 3), which needs four and infinity?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = 4, kN = 6;  ///< Outputs of a tile, and its products, along each axis.
constexpr std::ptrdiff_t kProducts = std::ptrdiff_t{kN} * kN;  ///< Of a tile.
constexpr WinogradMatrices<kM, 3> kMatrices =
    winograd_matrices<kM, 3>({0, 1, -1, Fraction(1, 2), -2});
static_assert(is_exact(kMatrices));
/// What makes the rows of G whole.
constexpr std::array<Fraction, kN> kScale = {1, 3, 3, Fraction(15, 4), 15, 1};

/// Whole: each row of G times its kScale.
constexpr auto kG = [] {
  auto g = kMatrices.g;
  for (std::size_t j = 0; j < kN; ++j)
    for (Fraction& number : g[j]) number = kScale[j] * number;
  return in_type<double>(g, 1);
}();
constexpr auto kB = in_type<float>(kMatrices.bt, 1);

/// A^T m, its columns divided by kScale.
template <class T>
constexpr std::array<T, kM> times_a(const std::array<T, kN>& m) {
  const T even = 5 * (m[1] + m[2]), odd = 5 * (m[1] - m[2]);
  return {m[0] + (even + 4 * m[3] + m[4]) / 15, (odd + 2 * m[3] - 2 * m[4]) / 15,
          (even + m[3] + 4 * m[4]) / 15, m[5] + (odd + m[3] / 2 - 8 * m[4]) / 15};
}

/// Whether times_a() is that: for units, and it is linear.
constexpr bool is_a() {
  for (std::size_t j = 0; j < kN; ++j) {
    std::array<Fraction, kN> unit;
    unit.fill(0);
    unit[j] = 1;
    for (std::size_t i = 0; i < kM; ++i)
      if (times_a(unit)[i] != kMatrices.at[i][j] / kScale[j]) return false;
  }
  return true;
}
static_assert(is_a());

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(checked_product(
      {conv.K, conv.C / conv.groups, kN, kN, sizeof(float)}, "bytes of transformed weights"));
}

/// weights [K][C/groups][3][3], u [K][C/groups][kN][kN].
void transform_weights(const Conv2dProblem& conv, const float* weights, float* u) {
  const std::int64_t filters = std::int64_t{conv.K} * (conv.C / conv.groups);
  for (std::int64_t filter = 0; filter < filters; ++filter, weights += 9, u += kProducts) {
    double g[9], whole[kN * kN];
    for (int i = 0; i < 9; ++i) g[i] = weights[i];
    both_sides(kG, g, whole);
    for (int i = 0; i < kN * kN; ++i) u[i] = static_cast<float>(whole[i]);
  }
}

/// The outputs of a tile: A^T m, and what is left of each row times A. m [kN][kN], y [kM][kM].
void transform_sums(const float* m, float* y) {
  std::array<std::array<float, kN>, kM> half;
  for (std::size_t k = 0; k < kN; ++k) {
    std::array<float, kN> column;
    for (std::size_t j = 0; j < kN; ++j) column[j] = m[j * kN + k];
    const auto down = times_a(column);
    for (std::size_t i = 0; i < kM; ++i) half[i][k] = down[i];
  }
  for (const auto& row : half)
    for (const float output : times_a(row)) *y++ = output;
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* bias = arrays.bias;
  float* y = arrays.y;
  float* u = context.workspace_as<float>();
  transform_weights(conv, arrays.weights, u);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 y_at{conv.K, conv.P, conv.Q};

  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      const int c0 = k / group_k * group_c;  // first input channel of k's group
      for (int p = 0; p < conv.P; p += kM) {
        for (int q = 0; q < conv.Q; q += kM) {
          float m[kN * kN] = {};
          const float* u_c = u + std::int64_t{k} * group_c * kN * kN;
          for (int c = 0; c < group_c; ++c, u_c += kProducts) {
            float d[kN * kN], v[kN * kN];
            for (int i = 0; i < kN * kN; ++i)
              d[i] = pixel(conv, x, n, c0 + c, p + i / kN, q + i % kN);
            both_sides(kB, d, v);
            for (int i = 0; i < kN * kN; ++i) m[i] += v[i] * u_c[i];
          }
          float sums[kM * kM];
          transform_sums(m, sums);
          const float bias_k = bias ? bias[k] : 0.0f;
          for (int i = 0; i < kM && p + i < conv.P; ++i)
            for (int j = 0; j < kM && q + j < conv.Q; ++j)
              y[y_at(n, k, p + i, q + j)] = activated(conv.activation, sums[kM * i + j] + bias_k);
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_points = {
    .supports = why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
