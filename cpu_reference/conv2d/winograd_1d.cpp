/// @file winograd_1d.cpp
/// @brief Winograd F(2, 3): two outputs of a row take four multiplications instead of six.
///
/// - Before: direct.cpp
/// - After: winograd_split_rows.cpp, winograd_2x2.cpp
///
/// **The idea.** Two outputs of a filter with three taps are six products of four inputs. Winograd
/// ("Arithmetic complexity of computations", 1980) computes them with four:
///
///     y0 = d0 g0 + d1 g1 + d2 g2       m0 = (d0 - d2) g0      m1 = (d1 + d2) (g0 + g1 + g2) / 2
///     y1 = d1 g0 + d2 g1 + d3 g2       m3 = (d3 - d1) g2      m2 = (d2 - d1) (g0 - g1 + g2) / 2
///
///                                      y0 = m0 + m1 + m2      y1 = m1 - m2 + m3
///
/// This is F(2, 3). The transform of g is computed once for all images; the transform of d would be
/// computed once for all filters in a fast program. The output transform is linear, so it is
/// applied after the sum over channels and over the three rows of a filter. The number of products
/// therefore determines the cost.
///
/// **Expect.** Two thirds of the multiplications of the definition: 6 C / G per output instead
/// of 9. The time falls by less, because this program transforms d anew for each filter.
/// **Costs.** If a row is odd, its last column is computed and dropped. The rounding error of a sum
/// also depends on its neighbours' terms. NaN and infinity reach the neighbour. Workspace of 4/3 of
/// the weights. Supports 3 x 3 filters with stride and dilation 1, layout NCHW and float32 only.
/// **Try.** Which of the four products remain if g1 = 0? How many does the definition have then?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = 2, kN = 4;  ///< Outputs of a tile, and its products.

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(checked_product(
      {conv.K, conv.C / conv.groups, 3, kN, sizeof(float)}, "bytes of transformed weights"));
}

/// weights [K][C/groups][3][3], u [K][C/groups][3][kN].
void transform_weights(const Conv2dProblem& conv, const float* weights, float* u) {
  const std::int64_t rows = std::int64_t{conv.K} * (conv.C / conv.groups) * 3;
  for (std::int64_t row = 0; row < rows; ++row, weights += 3, u += kN) {
    const double g0 = weights[0], g1 = weights[1], g2 = weights[2];
    u[0] = weights[0];
    u[1] = static_cast<float>((g0 + g1 + g2) / 2);
    u[2] = static_cast<float>((g0 - g1 + g2) / 2);
    u[3] = weights[2];
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
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; q += kM) {
          float m[kN] = {};
          const float* u_row = u + std::int64_t{k} * group_c * 3 * kN;
          for (int c = 0; c < group_c; ++c) {
            for (int r = 0; r < 3; ++r, u_row += kN) {
              float d[kN];
              for (int j = 0; j < kN; ++j) d[j] = pixel(conv, x, n, c0 + c, p + r, q + j);
              m[0] += (d[0] - d[2]) * u_row[0];
              m[1] += (d[1] + d[2]) * u_row[1];
              m[2] += (d[2] - d[1]) * u_row[2];
              m[3] += (d[3] - d[1]) * u_row[3];
            }
          }
          const float sums[kM] = {m[0] + m[1] + m[2], m[1] - m[2] + m[3]};
          const float bias_k = bias ? bias[k] : 0.0f;
          for (int j = 0; j < kM && q + j < conv.Q; ++j)
            y[y_at(n, k, p, q + j)] = activated(conv.activation, sums[j] + bias_k);
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_1d = {
    .supports = why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
