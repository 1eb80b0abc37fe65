/// @file 3xtf32.cu
/// @brief FFT convolution on tensor cores: one complex GEMM per frequency, as three real 3xTF32
/// GEMMs.
///
/// - Before: winograd/3xtf32.cu
/// - The same maths: cpu_reference/conv2d/fft_overlap_save.cpp
///
/// **The idea.** Frequency f of a tile is multiplied by frequency f of a filter only, so that with
/// many channels the middle step is one GEMM per frequency, as in winograd/3xtf32. These GEMMs are
/// complex. A tile is real, and half of its spectrum mirrors the other half: of 16 x 16 points 128
/// frequencies of two floats are left (shared/fft/real_tile.cuh). A complex product takes three
/// real ones (Gauss), with additions on both sides that cost no bytes: those of U are stored with
/// it, those of V are computed in the registers from which wgmma reads it
/// (shared/fft/gauss_product.cuh).
///
///     x, 16 x 16 -> V  re, im   -> k1 = U1 (re + im)   re = k1 - k3 -> M -> 14 x 14 of y
///     w,  3 x 3  -> U  U1 U2 U3    k2 = U2 re          im = k1 + k2
///                                  k3 = U3 im          frequencies 0, 8: re = k1, im = k3
///
/// V and M have 1.3 floats per pixel, F(4x4) has 2.25; and 2 products are left of 9, 2.7 of 25.
///
/// **Expect.** B9 (16x64x224x224, 64 filters): V and M, written and read, and x and y are 1.49 GB,
/// 355 us at 4.2 TB/s; 13 GFLOP are 130 us at 100 TFLOP/s, in total 490 us. B4 75 us, and where U
/// is large, 384 floats for a filter's channel, B6 130 us, B7 470 us, B10 880 us.
/// @expect on --n 2 --c 32 --h 56 --w 56 --k 32 --r 3 --s 3 --pad 1
/// @expect launches 4, U, V, products, y
/// @expect requests.shared.async 128 * (3 + 2 * 4) = 1408, for each product U's three and V's
/// @expect excess.shared.store 0, no bank twice
/// **Costs.** Workspace. Rounding errors as in fft/fused; NaN and infinity spread over a tile. With
/// few filters, channels or tiles the tensor cores are poorly used. Not supported: strides, filters
/// that reach over more than 9 pixels, NHWC, and other types than float32.
/// **Try.** Four products, as one of real matrices twice as large, need no kernel of their own
/// (gemm/wgmma_3xtf32.cuh). From how many channels on do Gauss's three pay?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/fft/gauss_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using Tile = RealTile;
using Point = Tile::Point;
using Plan = SpectraPlan;

/// weights [K][C/groups][R][S], u [frequency][group][3][m][k] of spectra over the number of points.
/// Grid (k / 32 rounded up, <= groups * m), block 8 threads a channel.
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_fft_3xtf32_weights(Conv2dProblem conv, Plan plan, const float* weights, float* u) {
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t c = std::int64_t{blockIdx.x} * tile.tiles + tile.lane;
  for (std::int64_t row = blockIdx.y; row < conv.groups * plan.m; row += gridDim.y) {
    if (row != blockIdx.y) __syncthreads();  // separates the last filter's columns from these rows
    const std::int64_t group = row / plan.m, k = row % plan.m;
    if (c < plan.k) {
      // The thread's own rows of its own tile: no barrier is needed.
      const std::int64_t from = ((group * group_k + k) * group_c + c) * conv.R * conv.S;
      for (int h = 2 * tile.pair; h < 2 * tile.pair + 2; ++h) {
        const int r = h / conv.dilation.h;
        const bool exists = k < group_k && c < group_c && h % conv.dilation.h == 0 && r < conv.R;
        for (int w = 0; w < Tile::kSide; ++w) {
          const int s = w / conv.dilation.w;
          Tile::point(points, tile.lane, h, w) =
              exists && w % conv.dilation.w == 0 && s < conv.S ? weights[from + r * conv.S + s] : 0;
        }
      }
      const int taps = Tile::kSide + 1 - plan.rows;  // below them, all spectra are zeros
      if (2 * tile.pair < taps) tile.transform_rows();
    }
    __syncthreads();  // separates all rows' spectra from the loads of columns
    if (c >= plan.k) continue;
    Point z[Tile::kSide];
    tile.transform_column(z);
    constexpr float kScale = 1.0f / Tile::kPoints;  // a power of two: exact
    const std::int64_t matrix = plan.m * plan.k;
#pragma unroll
    for (int f = 0; f < Tile::kSide; ++f) {
      const std::int64_t product = (tile.pair * Tile::kSide + f) * conv.groups + group;
      float* const to = u + product * 3 * matrix + k * plan.k + c;
      const bool two_reals = Tile::is_pair(tile.pair * Tile::kSide + f);
      const float re = z[f].re * kScale, im = z[f].im * kScale;
      // Of the conjugate re - i im: Gauss's re, im - re and re + im.
      to[0] = re;
      to[matrix] = two_reals ? 0.0f : -im - re;
      to[2 * matrix] = two_reals ? im : re - im;
    }
  }
}

/// x [N][C][H][W], v [frequency][group][2][k][n]: real and imaginary parts.
/// Grid (n / 32 rounded up, <= groups * k), block 8 threads a tile.
__global__ void __launch_bounds__(Tile::kThreads, 3)
    conv2d_fft_3xtf32_x(Conv2dProblem conv, Plan plan, const float* x, float* v) {
  __shared__ Plan::Place places[Tile::kTiles];
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int thread = static_cast<int>(threadIdx.x), group_c = conv.C / conv.groups;
  const std::int64_t first = std::int64_t{blockIdx.x} * tile.tiles;
  if (thread < tile.tiles) {
    const Plan::Place at = plan.place_of(static_cast<unsigned>(first + thread));
    places[thread] = at;
  }
  for (std::int64_t row = blockIdx.y; row < conv.groups * plan.k; row += gridDim.y) {
    // Separates the stores of places from their loads, and the loads of the last channel's columns
    // from the stores of pixels.
    __syncthreads();
    const std::int64_t group = row / plan.k, c = row % plan.k;
    // Neighbouring threads load neighbouring pixels of two rows of a tile.
    tile.for_each_point([&](int t, int i, int j) {
      float pixel = 0.0f;
      if (first + t < plan.tiles && c < group_c) {
        const Plan::Place at = places[t];
        const int h = at.p - conv.pad.top + i, w = at.q - conv.pad.left + j;
        const std::int64_t plane = std::int64_t{at.n} * conv.C + group * group_c + c;
        if (h >= 0 && h < conv.H && w >= 0 && w < conv.W)
          pixel = x[(plane * conv.H + h) * conv.W + w];
      }
      Tile::point(points, t, i, j) = pixel;
    });
    __syncthreads();  // separates the stores of pixels from the loads of rows
    tile.transform_rows();
    __syncthreads();  // separates all rows' spectra from the loads of columns
    Point z[Tile::kSide];
    tile.transform_column(z);
    if (first + tile.lane >= plan.n) continue;
    const std::int64_t matrix = plan.k * plan.n;
#pragma unroll
    for (int f = 0; f < Tile::kSide; ++f) {
      const std::int64_t product = (tile.pair * Tile::kSide + f) * conv.groups + group;
      float* const to = v + product * 2 * matrix + c * plan.n + first + tile.lane;
      to[0] = z[f].re, to[matrix] = z[f].im;
    }
  }
}

/// The products without tensor cores: a thread a complex sum. Any one-dimensional grid.
__global__ void conv2d_fft_3xtf32_sums(Plan plan, const float* u, const float* v, float* m) {
  const std::int64_t matrix_u = plan.m * plan.k, matrix_v = plan.k * plan.n,
                     matrix_m = plan.m * plan.n;
  for (const std::int64_t i : grid_stride(plan.products * matrix_m)) {
    const std::int64_t product = i / matrix_m, row = i % matrix_m / plan.n, column = i % plan.n;
    const bool two_reals = Tile::is_pair(static_cast<int>(product / plan.groups()));
    float re = 0.0f, im = 0.0f;
    for (std::int64_t k = 0; k < plan.k; ++k) {
      const float* const factor = u + product * 3 * matrix_u + row * plan.k + k;
      const float* const number = v + product * 2 * matrix_v + k * plan.n + column;
      const float v_re = number[0], v_im = number[matrix_v];
      const float k1 = factor[0] * (two_reals ? v_re : v_re + v_im), k2 = factor[matrix_u] * v_re,
                  k3 = factor[2 * matrix_u] * v_im;
      re += two_reals ? k1 : k1 - k3, im += two_reals ? k3 : k1 + k2;
    }
    float* const to = m + product * 2 * matrix_m + i % matrix_m;
    to[0] = re, to[matrix_m] = im;
  }
}

/// m [frequency][group][2][m][n], bias [K] or null, y [N][K][P][Q].
/// Grid (tiles / 32 rounded up, <= K), block 8 threads a tile.
__global__ void __launch_bounds__(Tile::kThreads, 3)
    conv2d_fft_3xtf32_y(Conv2dProblem conv, Plan plan, const float* m, const float* bias,
                        float* y) {
  __shared__ Plan::Place places[Tile::kTiles];
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int thread = static_cast<int>(threadIdx.x), group_k = conv.K / conv.groups;
  const std::int64_t first = std::int64_t{blockIdx.x} * tile.tiles;
  if (thread < tile.tiles) {
    const Plan::Place at = plan.place_of(static_cast<unsigned>(first + thread));
    places[thread] = at;
  }
  for (std::int64_t k = blockIdx.y; k < conv.K; k += gridDim.y) {
    if (k != blockIdx.y) __syncthreads();  // separates the last filter's outputs from these columns
    if (first + tile.lane < plan.tiles) {
      const std::int64_t matrix = plan.m * plan.n;
      Point z[Tile::kSide];
#pragma unroll
      for (int f = 0; f < Tile::kSide; ++f) {
        const std::int64_t product =
            (tile.pair * Tile::kSide + f) * std::int64_t{conv.groups} + k / group_k;
        const float* const from =
            m + product * 2 * matrix + k % group_k * plan.n + first + tile.lane;
        z[f] = {from[0], from[matrix]};
      }
      tile.transform_column_back(z);
    }
    __syncthreads();  // separates all columns, and the stores of places, from their loads
    if (first + tile.lane < plan.tiles && 2 * tile.pair < plan.rows) tile.transform_rows_back();
    __syncthreads();  // separates the stores of outputs from their loads
    const float bias_k = bias ? bias[k] : 0.0f;
    tile.for_each_point([&](int t, int i, int j) {
      if (first + t >= plan.tiles || i >= plan.rows || j >= plan.columns) return;
      const Plan::Place at = places[t];
      const int p = at.p + i, q = at.q + j;
      if (p < conv.P && q < conv.Q)
        y[((at.n * std::int64_t{conv.K} + k) * conv.P + p) * conv.Q + q] =
            activated(conv.activation, Tile::point(points, t, i, j) + bias_k);
    });
  }
}

/// U, V and M.
struct Workspace {
  float *u, *v, *m;
  std::size_t bytes;
};

Workspace workspace_of(const Plan& plan, std::byte* begin) {
  WorkspaceCutter cutter(begin);
  const auto floats = [&](int parts, std::int64_t rows, std::int64_t columns) {
    return cutter.take<float>(
        checked_product({plan.products, parts, rows, columns}, "floats of U, V, M"));
  };
  float* const u = floats(3, plan.m, plan.k);
  float* const v = floats(2, plan.k, plan.n);
  float* const m = floats(2, plan.m, plan.n);
  return {u, v, m, cutter.bytes()};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return workspace_of(Plan(conv), nullptr).bytes;
}

void launch_products(const Plan& plan, const Workspace& at) {
  if (plan.tensor_cores) {
    launch_gauss_product(plan, at.u, at.v, at.m);
  } else {
    constexpr int kThreads = 128;
    launch(conv2d_fft_3xtf32_sums,
           {blocks_for(plan.products * plan.m * plan.n, kThreads), kThreads}, plan, at.u, at.v,
           at.m);
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const Plan plan(conv);
  const Workspace at = workspace_of(plan, context.workspace_as<std::byte>());
  const auto launch_lines = [&](auto kernel, std::int64_t lanes, std::int64_t rows,
                                auto... arguments) {
    const unsigned tiles = static_cast<unsigned>(std::min<std::int64_t>(lanes, Tile::kTiles));
    launch(kernel,
           {dim3(blocks_for(lanes, Tile::kTiles), blocks_for(rows, 1, kMaxGridYZ)),
            tiles * Tile::kLines, Tile::kBytes},
           conv, plan, arguments...);
  };
  const float *x = arrays.x, *weights = arrays.weights, *bias = arrays.bias;
  float* y = arrays.y;
  launch_lines(conv2d_fft_3xtf32_weights, plan.k, conv.groups * plan.m, weights, at.u);
  launch_lines(conv2d_fft_3xtf32_x, plan.n, conv.groups * plan.k, x, at.v);
  launch_products(plan, at);
  launch_lines(conv2d_fft_3xtf32_y, plan.tiles, conv.K, static_cast<const float*>(at.m), bias, y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return Plan(conv).tensor_cores ? "products on tensor cores" : "a thread a sum of the products";
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_3xtf32 = {
    .supports = why_no_real_tiles,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
