/// @file fft_3xtf32.cu
/// @brief conv2d of many channels by Fourier transforms, products on Hopper's tensor cores.
///
/// - Before: cpu_reference/conv2d/fft_tiles.cpp
/// - The same maths: cpu_reference/conv2d/fft_tiles.cpp
///
/// **The idea.** Frequency f of a tile only ever meets frequency f of a filter, so that with many
/// channels the middle is a matrix product for each frequency, as in winograd_3xtf32. But these are
/// complex. A tile is real, and half of its spectrum mirrors the other half: of 16 x 16 points 128
/// frequencies are left, of two numbers each (real_tile.cuh). Multiplying by a complex number is
/// what a matrix of 2 x 2 does, so the product is a real one, and twice as large:
///
///     M, filter     U                 V, channel
///      | re |  =  |  re  im |  x  | re |      y = x conj(w): U's signs are a conjugate's
///      | im |     | -im  re |     | im |
///      | a  |  =  |  a   0  |  x  | a  |      frequencies 0 and 8 hold two real numbers
///      | b  |     |  0   b  |     | b  |
///
/// For 3 x 3, a tile keeps 14 x 14 outputs, so V has 1.3 numbers a pixel, and F(4x4) has 2.25.
///
/// **Expect.** B9 (16x64x224x224, 64 filters): V and M, written and read, and x and y are 1.48 GB,
/// 355 us at 4.2 TB/s; 17 GFLOP are 160 us at the 108 TFLOP/s of wgmma_3xtf32: 520 us. B4 80, and
/// where U is large, 512 numbers for a filter's channel, B6 160, B7 590, B10 1070.
/// @expect on --n 1 --c 32 --h 56 --w 56 --k 32 --r 3 --s 3 --pad 1
/// @expect launches 4, U, V, products, y
/// @expect requests.shared.async 128 * 2 * (1 + 4) = 1280, for each product two steps of U and of V
/// @expect excess.shared.store 0, no bank twice
/// **Costs.** Workspace. Rounding as of fft_fused; NaN and infinity reach all of a tile. Few
/// filters, channels or tiles leave the tensor cores to a plain product. Declines strides, filters
/// that reach over more than 9 pixels, NHWC, and other types than float32.
/// **Try.** Gauss: three products instead of four, in matrices of their own. How many bytes are
/// that, and from how many channels on does it pay?
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_naive/gemm/direct_batched.cuh"
#include "cuda_optimized/conv2d/real_tile.cuh"
#include "cuda_optimized/gemm/wgmma_3xtf32.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using Tile = RealTile;
using Point = Tile::Point;
constexpr int kMostTaps = 9;  ///< That a filter reaches over: half of a line is kept.
/// Below so many filters or channels of a group, or tiles, wgmma's would be zeros for the most
/// part.
constexpr int kFewFilters = 8, kFewChannels = 8, kFewTiles = 16;

std::int64_t reach(int taps, int dilation) { return std::int64_t{taps - 1} * dilation + 1; }

/// How outputs are divided, and the sizes of the products: of each frequency and group, M x N = (M
/// x K) (K x N).
struct Plan {
  int rows, columns;      ///< Outputs that are kept of a tile.
  int down, across;       ///< Tiles of an image.
  std::int64_t tiles;     ///< Of all images.
  bool tensor_cores;      ///< They compute the products, of whole tiles: filled up with zeros.
  std::int64_t m, n, k;   ///< Real and imaginary parts of filters; tiles; of channels.
  std::int64_t products;  ///< Frequencies times groups.

  /// The first output of a tile.
  struct Place {
    int n, p, q;
  };
  __device__ Place place_of(unsigned tile) const {
    const unsigned row = tile / static_cast<unsigned>(across);
    const unsigned image = row / static_cast<unsigned>(down);
    return {static_cast<int>(image),
            static_cast<int>(row - image * static_cast<unsigned>(down)) * rows,
            static_cast<int>(tile - row * static_cast<unsigned>(across)) * columns};
  }
};

/// Lanes of a block, from `first` on, that stay below `count`.
__device__ int lanes_below(std::int64_t count, std::int64_t first) {
  return count - first < Tile::kTiles ? static_cast<int>(count - first) : Tile::kTiles;
}

Plan plan_of(const Conv2dProblem& conv) {
  Plan plan{};
  plan.rows = Tile::kSide + 1 - static_cast<int>(reach(conv.R, conv.dilation.h));
  plan.columns = Tile::kSide + 1 - static_cast<int>(reach(conv.S, conv.dilation.w));
  plan.down = ceil_div(conv.P, plan.rows), plan.across = ceil_div(conv.Q, plan.columns);
  plan.tiles = std::int64_t{conv.N} * plan.down * plan.across;
  const std::int64_t filters = conv.K / conv.groups, channels = conv.C / conv.groups;
  plan.tensor_cores = filters >= kFewFilters && channels >= kFewChannels &&
                      plan.tiles >= kFewTiles && !gemm::why_no_wgmma();
  const auto up = [&](std::int64_t extent, int to) {
    return plan.tensor_cores ? ceil_div<std::int64_t>(extent, to) * to : extent;
  };
  plan.m = up(2 * filters, 64), plan.n = up(plan.tiles, Tile::kTiles),
  plan.k = up(2 * channels, 32);
  plan.products = std::int64_t{Tile::kFrequencies} * conv.groups;
  return plan;
}

/// weights [K][C/groups][R][S], u [frequency][group][m][k], over the number of points.
/// Grid (pairs of columns of u / 32 rounded up, <= pairs of rows).
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_fft_3xtf32_weights(Conv2dProblem conv, Plan plan, const float* weights, float* u) {
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t pairs = plan.m / 2, columns = plan.k / 2;  // of u, in two floats
  const std::int64_t c = std::int64_t{blockIdx.x} * Tile::kTiles + tile.lane;
  for (std::int64_t row = blockIdx.y; row < conv.groups * pairs; row += gridDim.y) {
    const std::int64_t group = row / pairs, k = row % pairs;
    if (c < columns) {
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
      tile.transform_rows();
    }
    __syncthreads();  // separates all rows' spectra from the loads of columns
    if (c < columns) {
      Point v[Tile::kSide];
      tile.transform_column(v);
      constexpr float kScale = 1.0f / Tile::kPoints;  // a power of two: exact
      float2* const to =
          reinterpret_cast<float2*>(u) +
          ((tile.pair * Tile::kSide * conv.groups + group) * plan.m + 2 * k) * columns + c;
#pragma unroll
      for (int i = 0; i < Tile::kSide; ++i) {
        const float re = v[i].re * kScale, im = v[i].im * kScale;
        const bool two_reals = Tile::is_pair(tile.pair * Tile::kSide + i);
        const std::int64_t at = i * conv.groups * plan.m * columns;
        to[at] = two_reals ? float2{re, 0.0f} : float2{re, im};
        to[at + columns] = two_reals ? float2{0.0f, im} : float2{-im, re};
      }
    }
    __syncthreads();  // separates the loads of columns from the next filter's rows
  }
}

/// x [N][C][H][W], v [frequency][group][k][n]. Grid (n / 32 rounded up, <= pairs of rows of v).
__global__ void __launch_bounds__(Tile::kThreads, 3)
    conv2d_fft_3xtf32_x(Conv2dProblem conv, Plan plan, const float* x, float* v) {
  __shared__ Plan::Place places[Tile::kTiles];
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int thread = static_cast<int>(threadIdx.x), group_c = conv.C / conv.groups;
  const std::int64_t first = std::int64_t{blockIdx.x} * Tile::kTiles, pairs = plan.k / 2;
  if (thread < Tile::kTiles) places[thread] = plan.place_of(static_cast<unsigned>(first + thread));
  __syncthreads();  // separates the stores of places from their loads
  const int lanes = lanes_below(plan.n, first), existing = lanes_below(plan.tiles, first);
  for (std::int64_t row = blockIdx.y; row < conv.groups * pairs; row += gridDim.y) {
    const std::int64_t group = row / pairs, c = row % pairs;
    // Neighbouring threads load neighbouring pixels of two rows of a tile.
    const int i = thread / Tile::kSide, j = thread % Tile::kSide;
    for (int t = 0; t < lanes; ++t) {
      float pixel = 0.0f;
      if (t < existing && c < group_c) {
        const Plan::Place at = places[t];
        const int h = at.p - conv.pad.top + i, w = at.q - conv.pad.left + j;
        const std::int64_t plane = std::int64_t{at.n} * conv.C + group * group_c + c;
        if (h >= 0 && h < conv.H && w >= 0 && w < conv.W)
          pixel = x[(plane * conv.H + h) * conv.W + w];
      }
      Tile::point(points, t, i, j) = pixel;
    }
    __syncthreads();  // separates the stores of pixels from the loads of rows
    if (tile.lane < lanes) tile.transform_rows();
    __syncthreads();  // separates all rows' spectra from the loads of columns
    if (tile.lane < lanes) {
      Point z[Tile::kSide];
      tile.transform_column(z);
      const std::int64_t row = (tile.pair * Tile::kSide * conv.groups + group) * plan.k + 2 * c;
      float* const to = v + row * plan.n + first + tile.lane;
#pragma unroll
      for (int f = 0; f < Tile::kSide; ++f) {
        const std::int64_t at = f * conv.groups * plan.k * plan.n;
        to[at] = z[f].re, to[at + plan.n] = z[f].im;
      }
    }
    __syncthreads();  // separates the loads of columns from the next channel's pixels
  }
}

/// m [frequency][group][m][n], bias [K] or null, y [N][K][P][Q]. Grid (tiles / 32 rounded up, <=
/// K).
__global__ void __launch_bounds__(Tile::kThreads, 3)
    conv2d_fft_3xtf32_y(Conv2dProblem conv, Plan plan, const float* m, const float* bias,
                        float* y) {
  __shared__ Plan::Place places[Tile::kTiles];
  float* const points = dynamic_shared<float>();
  const Tile tile(points);
  const int thread = static_cast<int>(threadIdx.x), group_k = conv.K / conv.groups;
  const std::int64_t first = std::int64_t{blockIdx.x} * Tile::kTiles;
  if (thread < Tile::kTiles) places[thread] = plan.place_of(static_cast<unsigned>(first + thread));
  const int existing = lanes_below(plan.tiles, first);
  const bool exists = tile.lane < existing;
  for (std::int64_t k = blockIdx.y; k < conv.K; k += gridDim.y) {
    const std::int64_t row =
        (tile.pair * Tile::kSide * conv.groups + k / group_k) * plan.m + 2 * (k % group_k);
    const std::int64_t from = row * plan.n + first + tile.lane;
    Point z[Tile::kSide];
#pragma unroll
    for (int f = 0; f < Tile::kSide; ++f) {
      const std::int64_t at = from + f * conv.groups * plan.m * plan.n;
      z[f] = exists ? Point{m[at], m[at + plan.n]} : Point{};
    }
    // Separates the stores of places from their loads, and the loads of the last filter's outputs
    // from the next one's columns.
    __syncthreads();
    if (exists) tile.transform_column_back(z);
    __syncthreads();  // separates all columns from the loads of rows
    if (exists && 2 * tile.pair < plan.rows) tile.transform_rows_back();
    __syncthreads();  // separates the stores of outputs from their loads
    const float bias_k = bias ? bias[k] : 0.0f;
    const int i = thread / Tile::kSide, j = thread % Tile::kSide;
    if (i >= plan.rows || j >= plan.columns) continue;
    for (int t = 0; t < existing; ++t) {
      const Plan::Place at = places[t];
      const int p = at.p + i, q = at.q + j;
      if (p < conv.P && q < conv.Q)
        y[((at.n * std::int64_t{conv.K} + k) * conv.P + p) * conv.Q + q] =
            activated(conv.activation, Tile::point(points, t, i, j) + bias_k);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (reach(conv.R, conv.dilation.h) > kMostTaps || reach(conv.S, conv.dilation.w) > kMostTaps)
    return "filters that reach over at most 9 pixels only";
  // Tiles may end beyond y by less than one, and rows of the products beyond what there is.
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() - 1024;
  if (conv.P > kMost || conv.Q > kMost) return "an extent of 2^31 - 1024 or more";
  const Plan plan = plan_of(conv);
  if (plan.tiles > kMost) return "2^31 - 1024 or more tiles";
  if (plan.m > kMost || plan.k > kMost || plan.products > kMost / std::max(plan.m, plan.k))
    return "2^31 or more rows of U or V";
  return {};
}

/// U, V and M.
struct Workspace {
  float *u, *v, *m;
  std::size_t bytes;
};

Workspace workspace_of(const Plan& plan, std::byte* begin) {
  WorkspaceCutter cutter(begin);
  const auto floats = [&](std::int64_t rows, std::int64_t columns) {
    return cutter.take<float>(checked_product({plan.products, rows, columns}, "floats of U, V, M"));
  };
  float* const u = floats(plan.m, plan.k);
  float* const v = floats(plan.k, plan.n);
  float* const m = floats(plan.m, plan.n);
  return {u, v, m, cutter.bytes()};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return workspace_of(plan_of(conv), nullptr).bytes;
}

void launch_products(const Plan& plan, const Workspace& at) {
  const int products = static_cast<int>(plan.products), M = static_cast<int>(plan.m),
            N = static_cast<int>(plan.n), K = static_cast<int>(plan.k);
  if (plan.tensor_cores) {
    gemm::launch_gemm_wgmma_3xtf32(
        {.products = products, .M = M, .N = N, .K = K, .a = at.u, .b = at.v, .c = at.m});
  } else {
    cuda_naive::gemm::launch_gemm({.M = M,
                                   .N = N,
                                   .K = K,
                                   .groups = products,
                                   .a = {at.u, plan.k, 1, 0, plan.m * plan.k},
                                   .b = {at.v, plan.n, 1, 0, plan.k * plan.n},
                                   .c = {at.m, plan.n, 1, 0, plan.m * plan.n}});
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const Plan plan = plan_of(conv);
  const Workspace at = workspace_of(plan, context.workspace_as<std::byte>());
  const auto launch_lines = [&](auto kernel, std::int64_t lanes, std::int64_t rows,
                                auto... arguments) {
    launch(kernel,
           {dim3(blocks_for(lanes, Tile::kTiles), blocks_for(rows, 1, kMaxGridYZ)), Tile::kThreads,
            Tile::kBytes},
           conv, plan, arguments...);
  };
  const float *x = arrays.x, *weights = arrays.weights, *bias = arrays.bias;
  float* y = arrays.y;
  launch_lines(conv2d_fft_3xtf32_weights, plan.k / 2, conv.groups * (plan.m / 2), weights, at.u);
  launch_lines(conv2d_fft_3xtf32_x, plan.n, conv.groups * (plan.k / 2), x, at.v);
  launch_products(plan, at);
  launch_lines(conv2d_fft_3xtf32_y, plan.tiles, conv.K, static_cast<const float*>(at.m), bias, y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return plan_of(conv).tensor_cores ? "products on tensor cores" : "a thread a sum of the products";
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_3xtf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
