/// @file winograd_2x2.cpp
/// @brief Winograd F(3 x 3, 2 x 2): 16 multiplications for nine taps of 2 x 2 gradients instead of
/// 36.
///
/// - Before: direct.cpp
/// - After: winograd.cpp
///
/// **The idea.** A tap of dw is a sum over outputs, which is split into tiles: 2 x 2 elements of dy
/// and 4 x 4 elements of x contribute 36 products to nine taps. Along a line, two elements of dy
/// move along four of x. This is the forward pass with exchanged roles, three sums of two terms
/// instead of two of three, and four products suffice:
///
///     dw0 = e0 d0 + e1 d1       m0 = (d0 - d2) e0      m1 = (d1 + d2) (e0 + e1) / 2
///     dw1 = e0 d1 + e1 d2       m3 = (d3 - d1) e1      m2 = (d2 - d1) (e0 - e1) / 2
///     dw2 = e0 d2 + e1 d3
///                               dw0 = m0 + m1 + m2     dw1 = m1 - m2     dw2 = m1 + m2 + m3
///
/// The transform of d has the same bits as in conv2d's winograd_2x2. The last step is linear and is
/// applied after the sum over all tiles of all images.
///
/// **Expect.** 4 products per element of dy and channel instead of 9.
/// **Costs.** Tiles are padded with zeros if 2 does not divide P or Q. Workspace: 16 accumulators
/// per filter and channel. NaN and infinity of a tile reach all nine taps. Supports 3 x 3 filters
/// with stride and dilation 1, layout NCHW and float32 only.
/// **Try.** db is the sum of dy. Which element of a transformed tile contains it already?
#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d_wgrad {
namespace {

constexpr int kM = 3, kTile = 2;  ///< Extents along each axis: taps of dw, elements of dy.
constexpr int kN = kM + kTile - 1, kProducts = kN * kN;  ///< Products along an axis, and in total.

/// G e of the first two of four elements with stride `apart`, in place.
void times_g(float* e, std::ptrdiff_t apart) {
  const float e0 = e[0], e1 = e[apart];
  e[apart] = (e0 + e1) / 2, e[2 * apart] = (e0 - e1) / 2, e[3 * apart] = e1;
}

/// B^T d of four elements, in place.
void times_b(float* d, std::ptrdiff_t apart) {
  float &d0 = d[0], &d1 = d[apart], &d2 = d[2 * apart], &d3 = d[3 * apart];
  const float v[kN] = {d0 - d2, d1 + d2, d2 - d1, d3 - d1};
  d0 = v[0], d1 = v[1], d2 = v[2], d3 = v[3];
}

/// A^T m of four elements, in place: the first three are the result.
void times_a(float* m, std::ptrdiff_t apart) {
  const float sum = m[apart] + m[2 * apart], difference = m[apart] - m[2 * apart];
  m[0] += sum, m[apart] = difference, m[2 * apart] = sum + m[3 * apart];
}

/// Applies along(line, apart) to the columns of a kN x kN matrix, and then to its rows.
void both_ways(float* matrix, void (*along)(float*, std::ptrdiff_t)) {
  for (std::ptrdiff_t j = 0; j < kN; ++j) along(matrix + j, kN);
  for (std::ptrdiff_t i = 0; i < kN; ++i) along(matrix + i * kN, 1);
}

/// Floats of a tile's transforms, u [K][16] and v [C][16], and of all accumulators, m
/// [K][C/groups][16].
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
  std::fill_n(m, std::int64_t{conv.K} * group_c * kProducts, 0.0f);
  std::fill_n(db, conv.K, 0.0f);

  for (int n = 0; n < conv.N; ++n) {
    for (int p = 0; p < conv.P; p += kTile) {
      for (int q = 0; q < conv.Q; q += kTile) {
        for (int k = 0; k < conv.K; ++k) {
          float* const tile = u + std::int64_t{k} * kProducts;
          std::fill_n(tile, kProducts, 0.0f);  // also beyond the last row and column of dy
          for (int i = 0; i < kTile && p + i < conv.P; ++i)
            for (int j = 0; j < kTile && q + j < conv.Q; ++j)
              db[k] += tile[kN * i + j] = dy[y_at(n, k, p + i, q + j)];
          both_ways(tile, times_g);
        }
        for (int c = 0; c < conv.C; ++c) {
          float* const window = v + std::int64_t{c} * kProducts;
          for (int i = 0; i < kProducts; ++i)
            window[i] = conv2d::pixel(conv, x, n, c, p + i / kN, q + i % kN);
          both_ways(window, times_b);
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
  float* sums = m;
  const std::int64_t filters = std::int64_t{conv.K} * group_c;
  for (std::int64_t filter = 0; filter < filters; ++filter, sums += kProducts) {
    both_ways(sums, times_a);
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < kM; ++j) *dw++ = sums[kN * i + j];
  }
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> winograd_2x2 = {
    .supports = conv2d::why_no_winograd,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d_wgrad
