/// @file winograd_4x4.cpp
/// @brief Winograd F(4 x 4, 3 x 3): 36 multiplications for 16 outputs; computed matrices.
///
/// - Before: winograd_2x2.cpp
/// - After: winograd_complex.cpp, fft_whole_image.cpp
///
/// **The idea.** F(2, 3) belongs to a family: m outputs of r taps take m + r - 1 products. The
/// matrices follow from the points (winograd_matrices.hpp), here 0, 1, -1, 2, -2 and infinity:
///
///            4  0 -5  0  1  0          1/4   0    0
///            0 -4 -4  1  1  0         -1/6 -1/6 -1/6           1  1  1  1  1  0
///     B^T =  0  4 -4 -1  1  0    G =  -1/6  1/6 -1/6    A^T =  0  1 -1  2 -2  0
///            0 -2 -1  2  1  0         1/24 1/12  1/6           0  1  1  4  4  0
///            0  2 -1 -2  1  0         1/24-1/12  1/6           0  1 -1  8 -8  1
///            0  4  0 -5  0  1           0    0    1
///
/// A sixth is not exact in float, but 3 G has only halves, quarters and eighths: this program
/// transforms weights by 3 G and divides the outputs by 9 at the end.
///
/// **Expect.** 2.25 C / G products per output instead of 9. Larger tiles save little more (F(6 x
/// 6): 1.78), and the rounding error grows with the powers of the points: here about ten times that
/// of the definition, in F(6 x 6) twice that.
/// **Costs.** On real data, the oracle's bound includes the error of the transforms. Of 7 x 7
/// outputs, a quarter is padding. Supports the same problems as winograd_1d.
/// **Try.** Use the points 0, 1, -1, 3, -3. Which multiple of G is exact in float?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = 4, kN = 6;  ///< Outputs of a tile, and its products, along each axis.
constexpr std::ptrdiff_t kProducts = std::ptrdiff_t{kN} * kN;  ///< Products of a tile.
constexpr int kScale = 3;                                      ///< The multiple of G that is used.
constexpr WinogradMatrices<kM, 3> kMatrices = winograd_matrices<kM, 3>({0, 1, -1, 2, -2});
static_assert(is_exact(kMatrices));

constexpr auto kG = in_type<double>(kMatrices.g, kScale);
constexpr auto kB = in_type<float>(kMatrices.bt, 1);
constexpr auto kA = in_type<float>(kMatrices.at, 1);

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
          both_sides(kA, m, sums);
          const float bias_k = bias ? bias[k] : 0.0f;
          for (int i = 0; i < kM && p + i < conv.P; ++i)
            for (int j = 0; j < kM && q + j < conv.Q; ++j)
              y[y_at(n, k, p + i, q + j)] =
                  activated(conv.activation, sums[kM * i + j] / (kScale * kScale) + bias_k);
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_4x4 = {
    .supports = why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
