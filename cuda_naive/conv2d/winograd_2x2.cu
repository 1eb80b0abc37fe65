/// @file winograd_2x2.cu
/// @brief Winograd F(2 x 2, 3 x 3): 16 GEMMs between two transform kernels.
///
/// - Before: im2col_gemm.cu
/// - After: cuda_optimized/conv2d/winograd/4x4.cu
/// - The same maths: cpu_reference/conv2d/winograd_2x2.cpp
///
/// **The idea.** Each of the 16 elements of a transformed window is multiplied only by the element
/// at the same position of the transformed filter. For one position f (a *frequency*), the elements
/// of all windows and channels form one matrix and those of all filters another; the sum over
/// channels is their product. Winograd's convolution is therefore 16 GEMMs.
///
///     x -- B^T d B, scattered -->  V[f]  C x tiles  |
///                                                    >  M[f] = U[f] V[f],  f = 0 ... 15
///     w -- G g G^T, scattered -->  U[f]  K x C      |
///                                                     M -- A^T m A, gathered --> y
///
/// **Expect.** 4 C / G multiply-adds per output instead of 9 C / G, but more traffic: V is 4 times
/// x and M is 4 times y; each is written once and read at least once, 4 x 103 MB at B4.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect lanes_per_output.workspace.store 4 * 16 / 64 + 16 / 16 + 4 = 6, V, U and M
/// @expect loads_per_output.workspace 4 * 2 * 16 + 4 = 132, 16 of each factor a product; and M
/// @expect loads_per_output.x 16 * 30 * 30 / (64 * 256) = 0.8789, 30 of 32 rows of windows inside
/// @expect launches 4
/// **Costs.** Workspace for U, V and M: 16/9 of the weights, and 4 times x and y. Tiles are always
/// complete (2 x 2). NaN and infinity spread over a tile. Supports 3 x 3 filters with stride and
/// dilation 1, layout NCHW, float32 and fewer than 2^31 tiles only.
/// **Try.** Store V as [tile][channel][f]. How many sectors does a warp's store then touch?
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "cuda_naive/gemm/direct_batched.cuh"

namespace convladder::BACKEND::cuda_naive::conv2d {
namespace {

constexpr int kM = 2, kN = 4;  ///< Extents of a tile of outputs and of its window along each axis.
constexpr int kFrequencies = kN * kN;
constexpr int kThreads = 128;  ///< Threads per block.
/// Enough blocks to fill any current GPU. Larger problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 8192;

/// G g of three elements with stride `apart`.
__device__ void times_g(const double* g, int apart, double* to, int to_apart) {
  const double g0 = g[0], g1 = g[apart], g2 = g[2 * apart];
  to[0] = g0;
  to[to_apart] = (g0 + g1 + g2) / 2;
  to[2 * to_apart] = (g0 - g1 + g2) / 2;
  to[3 * to_apart] = g2;
}

/// B^T d of four elements, in place.
__device__ void times_b(float* d, int apart) {
  const float d0 = d[0], d1 = d[apart], d2 = d[2 * apart], d3 = d[3 * apart];
  d[0] = d0 - d2, d[apart] = d1 + d2, d[2 * apart] = d2 - d1, d[3 * apart] = d3 - d1;
}

/// A^T m of four elements, in place: the first two are the result.
__device__ void times_a(float* m, int apart) {
  const float m1 = m[apart], m2 = m[2 * apart];
  m[0] = m[0] + m1 + m2, m[apart] = m1 - m2 + m[3 * apart];
}

/// Number of tiles along each axis, and in all images.
struct Tiles {
  std::int64_t down, across, all;
  HOST_DEVICE explicit Tiles(const Conv2dProblem& conv)
      : down(ceil_div(conv.P, kM)), across(ceil_div(conv.Q, kM)), all(conv.N * down * across) {}
};

/// weights [filters][3][3], u [kFrequencies][filters], where `filters` is K * C/groups. This kernel
/// and the following ones accept any one-dimensional grid.
__global__ void conv2d_winograd_2x2_weights(std::int64_t filters, const float* weights, float* u) {
  for (const std::int64_t i : grid_stride<kThreads>(filters)) {
    // In double, so that each element is rounded once; the time is negligible.
    double g[9], half[kN * 3], whole[kFrequencies];
    for (int e = 0; e < 9; ++e) g[e] = weights[i * 9 + e];
    for (int s = 0; s < 3; ++s) times_g(g + s, 3, half + s, 3);
    for (int f = 0; f < kN; ++f) times_g(half + f * 3, 1, whole + f * kN, 1);
    for (int f = 0; f < kFrequencies; ++f) u[f * filters + i] = static_cast<float>(whole[f]);
  }
}

/// x [N][C][H][W], v [kFrequencies][C][tiles].
__global__ void conv2d_winograd_2x2_x(Conv2dProblem conv, const float* x, float* v) {
  const Tiles tiles(conv);
  const Index4 x_at{conv.C, conv.H, conv.W};
  const std::int64_t count = conv.C * tiles.all;
  for (const std::int64_t i : grid_stride<kThreads>(count)) {
    const int c = static_cast<int>(i / tiles.all);
    const std::int64_t tile = i % tiles.all;
    const int n = static_cast<int>(tile / (tiles.down * tiles.across));
    const int h0 = static_cast<int>(tile / tiles.across % tiles.down) * kM - conv.pad.top;
    const int w0 = static_cast<int>(tile % tiles.across) * kM - conv.pad.left;
    float d[kFrequencies];
    for (int e = 0; e < kFrequencies; ++e) {
      const int h = h0 + e / kN, w = w0 + e % kN;
      const bool inside = h >= 0 && h < conv.H && w >= 0 && w < conv.W;
      d[e] = inside ? x[x_at(n, c, h, w)] : 0.0f;
    }
    for (int j = 0; j < kN; ++j) times_b(d + j, kN);
    for (int j = 0; j < kN; ++j) times_b(d + j * kN, 1);
    for (int f = 0; f < kFrequencies; ++f) v[f * count + i] = d[f];
  }
}

/// m [kFrequencies][K][tiles], bias [K] or null, y [N][K][P][Q].
__global__ void conv2d_winograd_2x2_y(Conv2dProblem conv, const float* m, const float* bias,
                                      float* y) {
  const Tiles tiles(conv);
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t count = conv.K * tiles.all;
  for (const std::int64_t i : grid_stride<kThreads>(count)) {
    const int k = static_cast<int>(i / tiles.all);
    const std::int64_t tile = i % tiles.all;
    const int n = static_cast<int>(tile / (tiles.down * tiles.across));
    const int p0 = static_cast<int>(tile / tiles.across % tiles.down) * kM;
    const int q0 = static_cast<int>(tile % tiles.across) * kM;
    float sums[kFrequencies];
    for (int f = 0; f < kFrequencies; ++f) sums[f] = m[f * count + i];
    for (int j = 0; j < kN; ++j) times_a(sums + j, kN);
    for (int j = 0; j < kM; ++j) times_a(sums + j * kN, 1);
    const float bias_k = bias ? bias[k] : 0.0f;
    for (int p = 0; p < kM && p0 + p < conv.P; ++p)
      for (int q = 0; q < kM && q0 + q < conv.Q; ++q)
        y[y_at(n, k, p0 + p, q0 + q)] = activated(conv.activation, sums[p * kN + q] + bias_k);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R != 3 || conv.S != 3) return "filters of 3x3 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  if (Tiles(conv).all > std::numeric_limits<int>::max()) return "2^31 or more tiles of 2x2";
  return {};
}

/// Number of floats of U, V and M.
struct Sizes {
  std::int64_t u, v, m;
  explicit Sizes(const Conv2dProblem& conv)
      : u(checked_product({kFrequencies, conv.K, conv.C / conv.groups}, "floats of U")),
        v(checked_product({kFrequencies, conv.C, Tiles(conv).all}, "floats of V")),
        m(checked_product({kFrequencies, conv.K, Tiles(conv).all}, "floats of M")) {}
};

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Sizes sizes(conv);
  return static_cast<std::size_t>(
      checked_product({sizes.u + sizes.v + sizes.m, sizeof(float)}, "bytes of transformed arrays"));
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const std::int64_t tiles = Tiles(conv).all;
  const std::int64_t group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Sizes sizes(conv);
  float* const u = context.workspace_as<float>();
  float* const v = u + sizes.u;
  float* const m = v + sizes.v;

  const std::int64_t filters = conv.K * group_c;
  launch(conv2d_winograd_2x2_weights, {blocks_for(filters, kThreads, kMaxBlocks), kThreads},
         filters, arrays.weights, u);
  launch(conv2d_winograd_2x2_x, {blocks_for(conv.C * tiles, kThreads, kMaxBlocks), kThreads}, conv,
         arrays.x, v);
  // The frequencies are passed as the images of the batched GEMM.
  gemm::launch_gemm({.M = static_cast<int>(group_k),
                     .N = static_cast<int>(tiles),
                     .K = static_cast<int>(group_c),
                     .images = kFrequencies,
                     .groups = conv.groups,
                     .a = {.data = u,
                           .row_stride = group_c,
                           .column_stride = 1,
                           .image_stride = filters,
                           .group_stride = group_k * group_c},
                     .b = {.data = v,
                           .row_stride = tiles,
                           .column_stride = 1,
                           .image_stride = conv.C * tiles,
                           .group_stride = group_c * tiles},
                     .c = {.data = m,
                           .row_stride = tiles,
                           .column_stride = 1,
                           .image_stride = conv.K * tiles,
                           .group_stride = group_k * tiles}});
  launch(conv2d_winograd_2x2_y, {blocks_for(conv.K * tiles, kThreads, kMaxBlocks), kThreads}, conv,
         m, arrays.bias, arrays.y);
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_2x2 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d
