/// @file winograd.cpp
/// @brief Winograd F(3 x 3, 4 x 4): 36 multiplications for nine taps of 4 x 4 gradients.
///
/// - Before: winograd_2x2.cpp
///
/// **The idea.** Along a line, the gradient with respect to the weights is a correlation like the
/// forward pass, with exchanged roles: three taps are the result, and a tile of dy moves along x.
///
///     forward      y[i]  = sum over r  of   g[r] * d[i + r]     4 of them, 3 terms:  F(4, 3)
///     here         dw[r] = sum over i  of  dy[i] * d[i + r]     3 of them, 4 terms:  F(3, 4)
///
/// Both use six products and the same points: B^T is the same, and A and G are exchanged.
///
///            1/4   0    0    0
///           -1/6 -1/6 -1/6 -1/6          1  1  1  1  1  0
///     G =   -1/6  1/6 -1/6  1/6    A^T = 0  1 -1  2 -2  0      dw = A^T [ sum over tiles of
///           1/24 1/12  1/6  1/3          0  1  1  4  4  1          (G dy G^T) .* (B^T x B) ] A
///           1/24-1/12  1/6 -1/3
///            0    0    0    1
///
/// As in the forward pass, 3 G replaces G, and dw is divided by 9.
/// **Expect.** 2.25 products per element of dy and channel instead of 9.
/// **Costs.** Rounding as in the forward pass. Tiles are padded with zeros if 4 does not divide P
/// or Q. Workspace: 36 accumulators per filter and channel. Supports the problems of winograd_2x2.
#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d_wgrad {
namespace {

constexpr int kM = 3, kTile = 4;  ///< Extents along each axis: taps of dw, elements of dy.
constexpr int kN = kM + kTile - 1, kProducts = kN * kN;  ///< Products along an axis, and in total.
constexpr int kScale = 3;                                ///< The multiple of G that is used.
constexpr auto kMatrices = conv2d::winograd_matrices<kM, kTile>({0, 1, -1, 2, -2});
static_assert(conv2d::is_exact(kMatrices));
constexpr auto kG = conv2d::in_type<float>(kMatrices.g, kScale);
constexpr auto kB = conv2d::in_type<float>(kMatrices.bt, 1);
constexpr auto kA = conv2d::in_type<float>(kMatrices.at, 1);

/// Floats of a tile's transforms, u [K][36] and v [C][36], and of all accumulators, m
/// [K][C/groups][36].
std::int64_t floats(const Conv2dProblem& conv) {
  const std::int64_t pairs = checked_product({conv.K, conv.C / conv.groups}, "weights of a tap");
  return checked_product({std::int64_t{conv.K} + conv.C + pairs, kProducts}, "transformed numbers");
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(
      checked_product({floats(conv), sizeof(float)}, "bytes of transformed numbers"));
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][3][3], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const float *x = arrays.x, *dy = arrays.dy;
  float *dw = arrays.dw, *db = arrays.db;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 y_at{conv.K, conv.P, conv.Q};
  float* const u = context.workspace_as<float>();
  float* const v = u + std::int64_t{conv.K} * kProducts;
  float* const m = v + std::int64_t{conv.C} * kProducts;
  std::fill_n(u, floats(conv), 0.0f);
  std::fill_n(db, conv.K, 0.0f);

  for (int n = 0; n < conv.N; ++n) {
    for (int p = 0; p < conv.P; p += kTile) {
      for (int q = 0; q < conv.Q; q += kTile) {
        for (int k = 0; k < conv.K; ++k) {
          float tile[kTile * kTile] = {};  // zeros beyond the last row and column
          for (int i = 0; i < kTile && p + i < conv.P; ++i)
            for (int j = 0; j < kTile && q + j < conv.Q; ++j)
              db[k] += tile[kTile * i + j] = dy[y_at(n, k, p + i, q + j)];
          conv2d::both_sides(kG, tile, u + std::int64_t{k} * kProducts);
        }
        for (int c = 0; c < conv.C; ++c) {
          float window[kProducts];
          for (int i = 0; i < kProducts; ++i)
            window[i] = conv2d::pixel(conv, x, n, c, p + i / kN, q + i % kN);
          conv2d::both_sides(kB, window, v + std::int64_t{c} * kProducts);
        }
        float* sums = m;
        for (int k = 0; k < conv.K; ++k) {
          const float* const u_k = u + std::int64_t{k} * kProducts;
          const float* v_c = v + std::int64_t{k / group_k} * group_c * kProducts;
          for (int c = 0; c < group_c; ++c, v_c += kProducts, sums += kProducts)
            for (int i = 0; i < kProducts; ++i) sums[i] += u_k[i] * v_c[i];
        }
      }
    }
  }
  const std::int64_t filters = std::int64_t{conv.K} * group_c;
  for (std::int64_t filter = 0; filter < filters; ++filter, dw += std::ptrdiff_t{kM} * kM) {
    conv2d::both_sides(kA, m + filter * kProducts, dw);
    for (int i = 0; i < kM * kM; ++i) dw[i] /= kScale * kScale;
  }
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> winograd = {
    .supports = conv2d::why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d_wgrad
