/// @file winograd_2x2.cpp
/// @brief Winograd F(2 x 2, 3 x 3): 16 multiplications for four outputs instead of 36.
///
/// - Before: winograd_1d.cpp
/// - After: winograd_4x4.cpp
///
/// **The idea.** F(2, 3) is written with matrices, y = A^T [(G g) .* (B^T d)], and applied to both
/// the columns and the rows of a window. A window d of 4 x 4 and a filter g of 3 x 3 yield 2 x 2
/// outputs (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016):
///
///     Y = A^T [ sum over c of (G g G^T) .* (B^T d B) ] A
///
///           1  0  0              1  0 -1  0             1  1  1  0
///     G =  .5 .5 .5      B^T  =  0  1  1  0      A^T =  0  1 -1  1
///          .5-.5 .5              0 -1  1  0
///           0  0  1              0 -1  0  1
///
/// B^T and A^T contain only additions. G halves: for integer weights, the elements of G g G^T are
/// multiples of 1/4, which are exact in float, so the result has the same bits as that of the
/// definition.
///
/// **Expect.** 4 C / G products per output instead of 9.
/// **Costs.** One additional output if P or Q is odd. 16 transformed weights for 9. NaN and
/// infinity of a window reach all four outputs. Supports the same problems as winograd_1d.
/// **Try.** Print the 16 elements V = B^T d B of a constant window. Which are 0, and why?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = 2, kN = 4;  ///< Outputs of a tile, and its products, along each axis.
constexpr std::ptrdiff_t kProducts = std::ptrdiff_t{kN} * kN;  ///< Products of a tile.

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(checked_product(
      {conv.K, conv.C / conv.groups, kN, kN, sizeof(float)}, "bytes of transformed weights"));
}

/// G g of a column or row of g, whose elements have the stride `apart`.
template <class T>
void times_g(const T* g, std::ptrdiff_t apart, double* to, std::ptrdiff_t to_apart) {
  const double g0 = g[0], g1 = g[apart], g2 = g[2 * apart];
  to[0] = g0;
  to[to_apart] = (g0 + g1 + g2) / 2;
  to[2 * to_apart] = (g0 - g1 + g2) / 2;
  to[3 * to_apart] = g2;
}

/// B^T d of four elements, in place.
void times_b(float* d, std::ptrdiff_t apart) {
  float &d0 = d[0], &d1 = d[apart], &d2 = d[2 * apart], &d3 = d[3 * apart];
  const float v[kN] = {d0 - d2, d1 + d2, d2 - d1, d3 - d1};
  d0 = v[0], d1 = v[1], d2 = v[2], d3 = v[3];
}

/// A^T m of four elements, in place: the first two are the result.
void times_a(float* m, std::ptrdiff_t apart) {
  const float y0 = m[0] + m[apart] + m[2 * apart], y1 = m[apart] - m[2 * apart] + m[3 * apart];
  m[0] = y0, m[apart] = y1;
}

/// weights [K][C/groups][3][3], u [K][C/groups][kN][kN].
void transform_weights(const Conv2dProblem& conv, const float* weights, float* u) {
  const std::int64_t filters = std::int64_t{conv.K} * (conv.C / conv.groups);
  for (std::int64_t filter = 0; filter < filters; ++filter, weights += 9, u += kProducts) {
    double half[kN * 3], whole[kN * kN];
    for (int s = 0; s < 3; ++s) times_g(weights + s, 3, half + s, 3);  // G g
    for (std::ptrdiff_t i = 0; i < kN; ++i)
      times_g(half + 3 * i, 1, whole + kN * i, 1);  // (G g) G^T
    for (int i = 0; i < kN * kN; ++i) u[i] = static_cast<float>(whole[i]);
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
          float m[kN * kN] = {};
          const float* u_c = u + std::int64_t{k} * group_c * kN * kN;
          for (int c = 0; c < group_c; ++c, u_c += kProducts) {
            float d[kN * kN];
            for (int i = 0; i < kN * kN; ++i)
              d[i] = pixel(conv, x, n, c0 + c, p + i / kN, q + i % kN);
            for (int j = 0; j < kN; ++j) times_b(d + j, kN);                 // B^T d
            for (std::ptrdiff_t i = 0; i < kN; ++i) times_b(d + kN * i, 1);  // (B^T d) B
            for (int i = 0; i < kN * kN; ++i) m[i] += d[i] * u_c[i];
          }
          for (int j = 0; j < kN; ++j) times_a(m + j, kN);
          for (std::ptrdiff_t i = 0; i < kM; ++i) times_a(m + kN * i, 1);
          const float bias_k = bias ? bias[k] : 0.0f;
          for (int i = 0; i < kM && p + i < conv.P; ++i)
            for (int j = 0; j < kM && q + j < conv.Q; ++j)
              y[y_at(n, k, p + i, q + j)] = activated(conv.activation, m[kN * i + j] + bias_k);
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_2x2 = {
    .supports = why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
