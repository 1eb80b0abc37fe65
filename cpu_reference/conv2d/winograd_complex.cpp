/// @file winograd_complex.cpp
/// @brief Winograd F(4 x 4, 3 x 3) with complex points: i and -i, 46 multiplications.
///
/// - Before: winograd_4x4.cpp
///
/// **The idea.** Besides 0, 1 and -1, no real points have small powers, but i and -i do (Meng and
/// Brothers, "Efficient Winograd convolution via integer arithmetic", 2019). The values of real
/// data at -i are the conjugates of those at i, so six real numbers still hold a line's values:
///
///              d4 - d0          at  0           -1    0    0                      1  1  1  2  0  0
///     d1 + d2 + d3 + d4             1          1/4  1/4  1/4                      0  1 -1  0 -2  0
///    -d1 + d2 - d3 + d4            -1     G =  1/4 -1/4  1/4               A^T =  0  1  1 -2  0  0
///         - d2      + d4   re of    i          1/4    0 -1/4                      0  1 -1  0  2  1
///    -d1      + d3         im               im   0  1/4    0
///              d5 - d1        infinity           0    0    1        twice the real part at i
///
/// In two dimensions, a pair of points meets a pair: 4 x 4 real values and 8 + 2 complex ones.
///
///     16 * 1  +  (8 + 2) * 3  =  46 products      Gauss's three for a complex one:
///                                                 k1 = c (a + b)   k2 = a (d - c)   k3 = b (c + d)
///     (a + b i)(c + d i)  =  (k1 - k3) + (k1 + k2) i
///
/// **Expect.** 2.9 C / G products per output instead of 9 (winograd/4x4: 2.25), with the rounding
/// error of winograd_2x2. G contains quarters, so integers are reproduced exactly.
/// **Costs.** 46 accumulators per tile. Otherwise as winograd/4x4.
#include "cpu_reference/conv2d/winograd_complex.hpp"

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = ComplexTile::kM, kN = ComplexTile::kN, kProducts = ComplexTile::kProducts;

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(checked_product(
      {conv.K, conv.C / conv.groups, kProducts, sizeof(float)}, "bytes of transformed weights"));
}

/// weights [K][C/groups][3][3], u [K][C/groups][kProducts].
void transform_weights(const Conv2dProblem& conv, const float* weights, float* u) {
  const std::int64_t filters = std::int64_t{conv.K} * (conv.C / conv.groups);
  for (std::int64_t filter = 0; filter < filters; ++filter, weights += 9, u += kProducts) {
    double g[9];
    for (int i = 0; i < 9; ++i) g[i] = weights[i];
    ComplexTile::filter(g, u);
  }
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
          float m[kProducts] = {};
          const float* u_c = u + std::int64_t{k} * group_c * kProducts;
          for (int c = 0; c < group_c; ++c, u_c += kProducts) {
            float d[kN * kN], v[kProducts];
            for (int i = 0; i < kN * kN; ++i)
              d[i] = pixel(conv, x, n, c0 + c, p + i / kN, q + i % kN);
            ComplexTile::window(d, v);
            for (int i = 0; i < kProducts; ++i) m[i] += v[i] * u_c[i];
          }
          float sums[kM * kM];
          ComplexTile::outputs(m, sums);
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

extern const Implementation<Conv2dArrays> winograd_complex = {
    .supports = why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
