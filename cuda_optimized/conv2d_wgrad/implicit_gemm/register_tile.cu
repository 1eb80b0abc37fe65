/// @file register_tile.cu
/// @brief Implicit GEMM: columns are gathered, not stored; 8 x 8 accumulators per thread.
///
/// - Before: cuda_naive/conv2d_wgrad/gather.cu
/// - After: split_k.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** The GEMM of im2col_gemm.cu without stored columns. All images together are one K
/// dimension: pixel l is output (p, q) of image n, and a column is tap (r, s) of channel c. Their
/// element is x[n, c, p * stride - pad + r * dilation, ...], gathered when a tile is filled:
///
///                  N*P*Q                       C/G*R*S             C/G*R*S
///          [ dy, along l -> ]            [ x, along l | ]        [        ]
///     K/G  [                ]  x  N*P*Q  [            v ]  = K/G [   dw   ]
///
/// Both operands are *K-major*: adjacent pixels are adjacent in memory, but the rows, filters of dy
/// and columns of x, are far apart. A thread multiplies 8 filters by 8 columns of one pixel and
/// reads those as vectors. So tiles are transposed while they are stored to shared memory: a warp
/// loads 8 pixels of 4 rows, and stores [pixel][row]. A column's channel and tap are decoded once
/// per block, a pixel's n, p, q once per step for all columns that the thread loads. The blocks of
/// the first columns also add up their tiles of dy, which is db.
///
/// **Expect.** For each 64 multiply-adds 4 float4 loads, as in a GEMM, and for each element about
/// ten instructions that compute its address, a fifth of all. And few blocks: B10's dw has 144
/// tiles for 132 SMs, B4's nine of 64 x 64, B3's three. So B10 takes some 10 ms, B4 longer than
/// with im2col_gemm.
/// @expect loads_per_output.x 16 * 46 * 46 / 9280 = 3.648, once for 64 filters
/// @expect loads_per_output.dy 3 * 64 * 256 / 9280 = 5.297, once for 48 taps
/// @expect blocks 3, few tiles
/// @expect launches 1, db comes with dw
/// **Costs.** Whole tiles are computed. Not supported: other layouts than NCHW, other types than
/// float32, 2^31 pixels, columns or inputs of a group.
/// **Try.** Store the tiles untransposed, [row][pixel], with a pitch of 12. How many shared loads
/// does a step need?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/reduce_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kStep = 8;    ///< Pixels that a block multiplies between two barriers.
constexpr int kStages = 2;  ///< Tiles in shared memory: one in use, the other being filled.
constexpr int kPad = 4;  ///< Padding after each row of a tile: 4 floats more than a multiple of 32
                         ///< banks.

/// One pixel of a step.
struct Pixel {
  std::int64_t x;    ///< Offset of its window's first tap in x, in the group's first channel.
  std::int64_t dy;   ///< Offset of the pixel in dy, in the tile's first filter.
  int h, w;          ///< Where its window begins in x, or in the padding.
  bool inside_part;  ///< The pixel belongs to this block's part of the sum.
};

/// Number `pixel` of the tile's pixels.
__device__ Pixel pixel_at(const SplitProduct& product, const SplitTile& tile, int first_filter,
                          int pixel) {
  const Conv2dProblem& conv = product.conv;
  const int n = product.plane.quotient(pixel), place = product.plane.remainder(pixel, n);
  const int p = product.row.quotient(place), q = product.row.remainder(place, p);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  const std::int64_t x_plane = std::int64_t{conv.H} * conv.W;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  return {(std::int64_t{n} * conv.C + tile.group * product.group_c) * x_plane +
              std::int64_t{h} * conv.W + w,
          (std::int64_t{n} * conv.K + first_filter) * y_plane + place, h, w,
          pixel < tile.pixel_end};
}

/// A column of the product: one tap of one channel.
struct Column {
  int x;     ///< Its offset from the window's first tap, first channel.
  int h, w;  ///< Its place in the window, rows and columns of x.
};

__device__ Column column_at(const SplitProduct& product, int column) {
  const Conv2dProblem& conv = product.conv;
  if (column >= product.columns) return {0, -(1 << 30), 0};  // never in x
  const int c = column / (conv.R * conv.S), tap = column % (conv.R * conv.S);
  const int h = tap / conv.S * conv.dilation.h, w = tap % conv.S * conv.dilation.w;
  return {(c * conv.H + h) * conv.W + w, h, w};
}

/// Shared memory of a block.
template <TileShape kTile>
struct alignas(16) Shared {
  float a[kStages][kStep][kTile.filters + kPad];  ///< dy, transposed: [pixel][filter]
  float b[kStages][kStep][kTile.columns + kPad];  ///< columns of x, transposed: [pixel][column]
  Column columns[kTile.columns];
};

/// x [N][C][H][W], dy [N][K][P][Q]. Grid (tiles * groups), block (Tile::kShape.threads()).
template <class Tile>
__global__ void __launch_bounds__(Tile::kShape.threads(), Tile::kShape.resident)
    conv2d_wgrad_implicit_gemm_register_tile(SplitProduct product, const float* x, const float* dy,
                                             Sums sums) {
  constexpr TileShape kTile = Tile::kShape;
  constexpr int kTileM = kTile.filters, kTileN = kTile.columns;
  using Threads = gemm::ThreadTile<kTileM, kTileN, kStep>;
  constexpr int kRows = Threads::kThreads / kStep;  // of a tile, that the block copies at a time
  __shared__ Shared<kTile> shared;
  const Conv2dProblem& conv = product.conv;
  const int thread = static_cast<int>(threadIdx.x);

  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;

  const auto number = static_cast<int>(blockIdx.x);
  SplitTile tile = tile_at(product, number);
  tile.split = 0;
  tile.pixel_begin = 0;
  tile.pixel_end = product.pixels;
  const int m0 = tile.m * kTileM, n0 = tile.n * kTileN;
  const int first_filter = tile.group * product.group_k + m0;
  const int filters = min(kTileM, product.group_k - m0);

  for (int i = thread; i < kTileN; i += Threads::kThreads) {
    const Column column = column_at(product, n0 + i);
    shared.columns[i] = column;
  }
  __syncthreads();  // between the columns' writes and their reads

  const int pixel = thread % kStep, row0 = thread / kStep;
  float next_a[kTileM / kRows], next_b[kTileN / kRows];
  // The elements of the step that begins at pixel `first`; zeros beyond the ends of the sum, the
  // filters and x.
  const auto fetch = [&](int first) {
    const Pixel at = pixel_at(product, tile, first_filter, first + pixel);
#pragma unroll
    for (int i = 0; i < kTileN; i += kRows) {
      const Column column = shared.columns[row0 + i];
      // Negative coordinates become huge ones, so that one comparison checks both ends.
      const bool inside = at.inside_part &&
                          static_cast<unsigned>(at.h + column.h) < static_cast<unsigned>(conv.H) &&
                          static_cast<unsigned>(at.w + column.w) < static_cast<unsigned>(conv.W);
      next_b[i / kRows] = inside ? x[at.x + column.x] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kTileM; i += kRows) {
      const bool inside = at.inside_part && row0 + i < filters;
      next_a[i / kRows] = inside ? dy[at.dy + (row0 + i) * y_plane] : 0.0f;
    }
  };
  const auto store = [&](int stage) {
#pragma unroll
    for (int i = 0; i < kTileM; i += kRows) shared.a[stage][pixel][row0 + i] = next_a[i / kRows];
#pragma unroll
    for (int i = 0; i < kTileN; i += kRows) shared.b[stage][pixel][row0 + i] = next_b[i / kRows];
  };

  const Threads place(threadIdx.x);
  float products[Threads::kThreadM][Threads::kThreadN] = {};
  float bias_sum = 0.0f;
  int stage = 0;
  if (tile.pixel_begin < tile.pixel_end) {
    fetch(tile.pixel_begin);
    store(stage);
  }
  for (int first = tile.pixel_begin; first < tile.pixel_end; first += kStep) {
    // The one barrier: between the writes of this step's tiles and the reads below. It also stands
    // between the reads of the other tiles, a step ago, and the writes into them at the end of
    // this.
    __syncthreads();
    const bool has_next = first + kStep < tile.pixel_end;
    if (has_next) fetch(first + kStep);
    if (tile.n == 0 && thread < kTileM) {
#pragma unroll
      for (int k = 0; k < kStep; ++k) bias_sum += shared.a[stage][k][thread];
    }
    place.template multiply<kTileM + kPad, kTileN + kPad>(&shared.a[stage][0][0],
                                                          &shared.b[stage][0][0], products);
    stage ^= 1;
    if (has_next) store(stage);
  }

#pragma unroll
  for (int i = 0; i < Threads::kThreadM; ++i) {
    const int m = place.m + Threads::row(i);
#pragma unroll
    for (int j = 0; j < Threads::kThreadN; ++j) {
      const int column = n0 + place.n + Threads::column(j);
      if (m >= filters || column >= product.columns) continue;
      sums.dw[std::int64_t{first_filter + m} * product.columns + column] = products[i][j];
    }
  }
  if (tile.n == 0 && thread < filters) {
    sums.db[first_filter + thread] = bias_sum;
  }
}

/// A kernel and its tile.
struct Choice {
  TileShape shape;
  double teraflops;  ///< What it reaches on an H200 where only the products counts.
  void (*kernel)(SplitProduct, const float*, const float*, Sums);
};

template <class Tile>
Choice choice_of(double teraflops) {
  return {Tile::kShape, teraflops, conv2d_wgrad_implicit_gemm_register_tile<Tile>};
}

/// The larger tile loads less for each product, if there are filters to fill it.
std::pair<Choice, Plan> choose(const Conv2dProblem& conv) {
  const Choice choice =
      conv.K / conv.groups > 64 ? choice_of<LargeTile>(36) : choice_of<SmallTile>(32);
  return {choice, plan_for(conv, choice.shape, choice.teraflops, kStep, 1)};
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return too_large_for_ints(conv);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const auto [choice, plan] = choose(conv);
  const SplitProduct& product = plan.product;
  const Sums sums = sums_of(product, arrays, context);
  const dim3 grid(static_cast<unsigned>(product.tiles_m * product.tiles_n * conv.groups));
  launch(choice.kernel, {grid, static_cast<unsigned>(choice.shape.threads())}, product, arrays.x,
         arrays.dy, sums);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return in_words(choose(conv).first.shape);
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_register_tile = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
