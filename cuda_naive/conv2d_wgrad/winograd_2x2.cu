/// @file winograd_2x2.cu
/// @brief Winograd F(3 x 3, 2 x 2): 16 GEMMs between two transform kernels.
///
/// - Before: gather.cu
/// - The same maths: cpu_reference/conv2d_wgrad/winograd_2x2.cpp
///
/// **The idea.** As in conv2d's winograd_2x2, the elements at frequency f of all transformed tiles
/// form a matrix, and so do those of the other operand. Here the GEMM sums over tiles instead of
/// channels, and its results are per filter and channel instead of per tile:
///
///     x  -- B^T d B, scattered -->  V[f]  C x tiles  |
///                                                     >  M[f] = U[f] V[f]^T,  f = 0 ... 15
///     dy -- G e G^T, scattered -->  U[f]  K x tiles  |
///                                                      M -- A^T m A, gathered --> dw
///
/// Both operands are contiguous along the summed axis. db is computed from U: its element at point
/// 1 along both axes is a quarter of the sum of a tile.
///
/// **Expect.** 4 multiply-adds per element of dy and channel instead of 9, by the naive GEMM. B4
/// (32x64x56x56, 64 filters) has 65536 sums of 25088 terms, and 206 MB of U and V, each written
/// once and read many times. Predicted on an H200: 4 ms.
/// @expect on --n 2 --c 64 --h 16 --w 16 --k 32 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace (2 * 16 * 2048 * 128 + 16 * 2048 + 32 * 128) / 18464 = 456.3
/// @expect loads_per_output.x 2 * 64 * 30 * 30 / 18464 = 6.239, 30 of 32 rows of windows inside
/// @expect loads_per_output.dy 2 * 32 * 256 / 18464 = 0.8873, each number once
/// @expect launches 5, V, U, products, dw and db
/// **Costs.** Workspace for U, V and M: 4 times dy and x, and 16/9 of dw. Tiles are always complete
/// (2 x 2). NaN and infinity of a tile reach all nine taps. Supports 3 x 3 filters with stride and
/// dilation 1, layout NCHW, float32 and fewer than 2^31 tiles only.
/// **Try.** Which rung of the gemm ladder reads operand B in this layout? Time it for B4.
#include <limits>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "cuda_naive/gemm/direct_batched.cuh"

namespace convladder::BACKEND::cuda_naive::conv2d_wgrad {
namespace {

constexpr int kTaps = 3, kTile = 2, kN = 4;  ///< Extents along each axis: taps of dw, elements of
                                             ///< dy, and elements of a window.
constexpr int kFrequencies = kN * kN;
constexpr int kThreads = 128;  ///< Threads per block.
/// Enough blocks to fill any current GPU. Larger problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 8192;

/// G e of the first two of four elements, in place.
__device__ void times_g(float* e, int apart) {
  const float e0 = e[0], e1 = e[apart];
  e[apart] = (e0 + e1) / 2, e[2 * apart] = (e0 - e1) / 2, e[3 * apart] = e1;
}

/// B^T d of four elements, in place.
__device__ void times_b(float* d, int apart) {
  const float d0 = d[0], d1 = d[apart], d2 = d[2 * apart], d3 = d[3 * apart];
  d[0] = d0 - d2, d[apart] = d1 + d2, d[2 * apart] = d2 - d1, d[3 * apart] = d3 - d1;
}

/// A^T m of four elements, in place: the first three are the result.
__device__ void times_a(float* m, int apart) {
  const float sum = m[apart] + m[2 * apart], difference = m[apart] - m[2 * apart];
  m[0] += sum, m[apart] = difference, m[2 * apart] = sum + m[3 * apart];
}

/// Number of tiles of dy along each axis, and in all images.
struct Tiles {
  std::int64_t down, across, all;
  HOST_DEVICE explicit Tiles(const Conv2dProblem& conv)
      : down(ceil_div(conv.P, kTile)), across(ceil_div(conv.Q, kTile)),
        all(conv.N * down * across) {}
};

/// Transforms planes [N][planes][height][width] to [kFrequencies][planes][tiles]: along(line,
/// apart) is applied along both axes to the `side` x `side` elements of each tile, with `top` and
/// `left` rows and columns of padding.
/// @param side elements along each axis: kTile for dy, kN for x
template <class Along>
__device__ void transform(const Conv2dProblem& conv, int planes, int height, int width, int top,
                          int left, int side, const float* from, float* to, const Along& along) {
  const Tiles tiles(conv);
  const Index4 at{planes, height, width};
  const std::int64_t count = planes * tiles.all;
  for (const std::int64_t i : grid_stride<kThreads>(count)) {
    const int plane = static_cast<int>(i / tiles.all);
    const std::int64_t tile = i % tiles.all;
    const int n = static_cast<int>(tile / (tiles.down * tiles.across));
    const int row0 = static_cast<int>(tile / tiles.across % tiles.down) * kTile - top;
    const int column0 = static_cast<int>(tile % tiles.across) * kTile - left;
    float numbers[kFrequencies];
    for (int e = 0; e < kFrequencies; ++e) {
      const int row = row0 + e / kN, column = column0 + e % kN;
      const bool inside = e / kN < side && e % kN < side && row >= 0 && row < height &&
                          column >= 0 && column < width;
      numbers[e] = inside ? from[at(n, plane, row, column)] : 0.0f;
    }
    for (int j = 0; j < kN; ++j) along(numbers + j, kN);
    for (int j = 0; j < kN; ++j) along(numbers + j * kN, 1);
    for (int f = 0; f < kFrequencies; ++f) to[f * count + i] = numbers[f];
  }
}

/// x [N][C][H][W], v [kFrequencies][C][tiles]. This kernel and the following ones accept any
/// one-dimensional grid.
__global__ void conv2d_wgrad_winograd_2x2_x(Conv2dProblem conv, const float* x, float* v) {
  transform(conv, conv.C, conv.H, conv.W, conv.pad.top, conv.pad.left, kN, x, v,
            [](float* line, int apart) { times_b(line, apart); });
}

/// dy [N][K][P][Q], u [kFrequencies][K][tiles].
__global__ void conv2d_wgrad_winograd_2x2_dy(Conv2dProblem conv, const float* dy, float* u) {
  transform(conv, conv.K, conv.P, conv.Q, 0, 0, kTile, dy, u,
            [](float* line, int apart) { times_g(line, apart); });
}

/// m [kFrequencies][filters], dw [filters][3][3], where `filters` is K * C/groups.
__global__ void conv2d_wgrad_winograd_2x2_dw(std::int64_t filters, const float* m, float* dw) {
  for (const std::int64_t i : grid_stride<kThreads>(filters)) {
    float sums[kFrequencies];
    for (int f = 0; f < kFrequencies; ++f) sums[f] = m[f * filters + i];
    for (int j = 0; j < kN; ++j) times_a(sums + j, kN);
    for (int j = 0; j < kTaps; ++j) times_a(sums + j * kN, 1);
    for (int tap = 0; tap < kTaps * kTaps; ++tap)
      dw[i * kTaps * kTaps + tap] = sums[tap / kTaps * kN + tap % kTaps];
  }
}

/// u [kFrequencies][K][tiles], db [K].
__global__ void conv2d_wgrad_winograd_2x2_db(Conv2dProblem conv, const float* u, float* db) {
  const std::int64_t tiles = Tiles(conv).all;
  for (const std::int64_t k : grid_stride<kThreads>(conv.K)) {
    const float* const of_one = u + ((kN + 1) * conv.K + k) * tiles;  // point 1 along both axes
    float sum = 0.0f;
    for (std::int64_t tile = 0; tile < tiles; ++tile) sum += of_one[tile];
    db[k] = 4 * sum;
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
      : u(checked_product({kFrequencies, conv.K, Tiles(conv).all}, "floats of U")),
        v(checked_product({kFrequencies, conv.C, Tiles(conv).all}, "floats of V")),
        m(checked_product({kFrequencies, conv.K, conv.C / conv.groups}, "floats of M")) {}
};

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Sizes sizes(conv);
  return static_cast<std::size_t>(
      checked_product({sizes.u + sizes.v + sizes.m, sizeof(float)}, "bytes of transformed arrays"));
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][3][3], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const std::int64_t tiles = Tiles(conv).all;
  const std::int64_t group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t filters = conv.K * group_c;
  const Sizes sizes(conv);
  float* const u = context.workspace_as<float>();
  float* const v = u + sizes.u;
  float* const m = v + sizes.v;
  const auto launch_for = [&](std::int64_t items, auto kernel, auto... arguments) {
    if (items > 0)
      launch(kernel, {blocks_for(items, kThreads, kMaxBlocks), kThreads}, arguments...);
  };

  launch_for(conv.C * tiles, conv2d_wgrad_winograd_2x2_x, conv, arrays.x, v);
  launch_for(conv.K * tiles, conv2d_wgrad_winograd_2x2_dy, conv, arrays.dy, u);
  // The frequencies are passed as the images of the batched GEMM. For N = 0 the GEMM writes empty
  // sums.
  gemm::launch_gemm({.M = static_cast<int>(group_k),
                     .N = static_cast<int>(group_c),
                     .K = static_cast<int>(tiles),
                     .images = kFrequencies,
                     .groups = conv.groups,
                     .a = {.data = u,
                           .row_stride = tiles,
                           .column_stride = 1,
                           .image_stride = conv.K * tiles,
                           .group_stride = group_k * tiles},
                     .b = {.data = v,
                           .row_stride = 1,
                           .column_stride = tiles,
                           .image_stride = conv.C * tiles,
                           .group_stride = group_c * tiles},
                     .c = {.data = m,
                           .row_stride = group_c,
                           .column_stride = 1,
                           .image_stride = filters,
                           .group_stride = group_k * group_c}});
  launch_for(filters, conv2d_wgrad_winograd_2x2_dw, filters, m, arrays.dw);
  launch_for(conv.K, conv2d_wgrad_winograd_2x2_db, conv, u, arrays.db);
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> winograd_2x2 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d_wgrad
