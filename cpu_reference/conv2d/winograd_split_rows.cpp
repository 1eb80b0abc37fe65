/// @file winograd_split_rows.cpp
/// @brief Winograd F(3, 3) for wide filters: a row of up to six taps is split into two pieces.
///
/// - Before: winograd_1d.cpp
///
/// **The idea.** A filter row of six taps is the sum of two rows of three taps, offset by three
/// columns. F(3, 3) takes five products instead of nine (points 0, 1, -1, 2, infinity). Its tiles
/// are three columns apart, so each window is transformed once for both pieces:
///
///     columns of x   0 1 2 3 4 5 6 7 8 9 ...        tile 0 = V0 * piece 0 + V1 * piece 1
///     windows       |-- V0 --|    |-- V2 -           tile 1 = V1 * piece 0 + V2 * piece 1
///                         |-- V1 --|                five numbers each
///
/// The products of all pieces, rows and channels are accumulated, then transformed once:
///
///            2 -1 -2  1  0          1/2   0    0
///            0 -2 -1  1  0         -1/2 -1/2 -1/2           1  1  1  1  0
///     B^T =  0  2 -3  1  0    G =  -1/6  1/6 -1/6    A^T =  0  1 -1  2  0
///            0 -1  0  1  0          1/6  1/3  2/3           0  1  1  4  1
///            0  2 -1 -2  1           0    0    1
///
/// As in winograd_4x4.cpp, weights are transformed by 3 G, and outputs are divided by 3.
/// **Expect.** Ten products for 18 along a row of six taps: 20 C / G per output instead of 36.
/// **Costs.** Five taps take as many products as six. Supports filters of 4 to 6 columns and up to
/// 6 rows with stride and dilation 1, layout NCHW and float32 only.
#include <algorithm>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"
#include "cpu_reference/conv2d/winograd_problem.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kM = 3,
              kN = 5;       ///< Outputs of a tile, which equal the taps of a piece; its products.
constexpr int kPieces = 2;  ///< Pieces of a row of a filter.
constexpr int kRowProducts = kPieces * kN;  ///< Transformed elements of a row of a filter.
constexpr int kScale = 3;                   ///< The multiple of G that is used.
constexpr int kMostTaps = 3 * kPieces;      ///< The largest extent along each axis.
constexpr WinogradMatrices<kM, 3> kMatrices = winograd_matrices<kM, 3>({0, 1, -1, 2});
static_assert(is_exact(kMatrices));

constexpr auto kG = in_type<double>(kMatrices.g, kScale);
constexpr auto kB = in_type<float>(kMatrices.bt, 1);
constexpr auto kA = in_type<float>(kMatrices.at, 1);

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R > kMostTaps || conv.S <= 3 || conv.S > kMostTaps)
    return "filters of 1 to 6 rows and 4 to 6 columns only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(
      checked_product({conv.K, conv.C / conv.groups, conv.R, kPieces, kN, sizeof(float)},
                      "bytes of transformed weights"));
}

/// to = matrix * from.
template <class T, std::size_t kRows, std::size_t kColumns>
void times(const std::array<std::array<T, kColumns>, kRows>& matrix, const T* from, T* to) {
  for (const auto& row : matrix) {
    T sum = 0;
    for (std::size_t i = 0; i < kColumns; ++i) sum += row[i] * from[i];
    *to++ = sum;
  }
}

/// weights [K][C/groups][R][S], u [K][C/groups][R][kPieces][kN].
void transform_weights(const Conv2dProblem& conv, const float* weights, float* u) {
  const std::int64_t rows = std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R;
  for (std::int64_t row = 0; row < rows; ++row, weights += conv.S) {
    for (int piece = 0; piece < kPieces; ++piece) {
      double g[3], whole[kN];
      for (int i = 0; i < 3; ++i) {
        const int s = 3 * piece + i;
        g[i] = s < conv.S ? weights[s] : 0.0f;  // missing taps of the last piece
      }
      times(kG, g, whole);
      for (const double number : whole) *u++ = static_cast<float>(number);
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* bias = arrays.bias;
  float* y = arrays.y;
  float* u = context.workspace_as<float>();
  transform_weights(conv, arrays.weights, u);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int tiles = ceil_div(conv.Q, kM);
  const Index4 y_at{conv.K, conv.P, conv.Q};
  // A row of x: a transformed window for each tile, and one for the piece beyond the last tile.
  std::vector<float> v(static_cast<std::size_t>(tiles + kPieces - 1) * kN);
  std::vector<float> m(static_cast<std::size_t>(tiles) * kN);  // a row of y, likewise

  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      const int c0 = k / group_k * group_c;  // first input channel of k's group
      for (int p = 0; p < conv.P; ++p) {
        std::ranges::fill(m, 0.0f);
        const float* u_row = u + std::int64_t{k} * group_c * conv.R * kRowProducts;
        for (int c = 0; c < group_c; ++c) {
          for (int r = 0; r < conv.R; ++r, u_row += kRowProducts) {
            for (int window = 0; window < tiles + kPieces - 1; ++window) {
              float d[kN];
              for (int j = 0; j < kN; ++j) d[j] = pixel(conv, x, n, c0 + c, p + r, kM * window + j);
              times(kB, d, &v[static_cast<std::size_t>(window) * kN]);
            }
            for (std::size_t i = 0; i < m.size(); ++i) {
              for (std::size_t piece = 0; piece < kPieces; ++piece)
                m[i] += v[i + piece * kN] * u_row[piece * kN + i % kN];
            }
          }
        }
        const float bias_k = bias ? bias[k] : 0.0f;
        for (int tile = 0; tile < tiles; ++tile) {
          float sums[kM];
          times(kA, &m[static_cast<std::size_t>(tile) * kN], sums);
          for (int j = 0; j < kM && kM * tile + j < conv.Q; ++j)
            y[y_at(n, k, p, kM * tile + j)] = activated(conv.activation, sums[j] / kScale + bias_k);
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_split_rows = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
