/// @file split_k.cu
/// @brief Split-K: the K dimension is split over blocks, and the parts are added in a fixed order.
///
/// - Before: register_tile.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** A weight gradient has few outputs and a large K: dw of problem B4 is 64 x 576,
/// nine tiles, with K = 100352. Nine blocks leave 123 of 132 SMs idle. So K is cut into parts:
/// block (tile, part) adds up its share of the pixels and stores the result in the workspace, and a
/// second kernel adds the parts.
///
///     pixels   0 ....... 1144 .... 2288 ....      100352
///     tile 0   [ part 0 ][ part 1 ][ part 2 ] ... [ part 87 ]     dw = part 0 + part 1 + ...
///     tile 1   [        ][        ][        ]                          always in the same order
///
/// No atomics, and a fixed order: the same input gives the same bits. Few parts leave SMs idle,
/// also in the last wave; many parts cost their traffic, and every block has a prologue and an
/// epilogue. shared/split_k.cuh estimates the time of each number of parts and takes the best. It
/// always assumes an H200: with the parameters of the present GPU, the bits of dw would differ from
/// GPU to GPU.
///
/// **Expect.** B4 has nine tiles, six blocks per SM and 88 parts: 792 blocks, one wave. The GEMM
/// takes 230 us at 32 TFLOP/s. The parts are 13 MB, written and read once in L2: 7 us; with the
/// launch and the first loads the model expects 250 us. B3: three tiles, 263 parts, 330 us.
/// @expect lanes_per_output.workspace.store 32, parts of 8 pixels each
/// @expect loads_per_output.workspace 32, each once
/// @expect blocks 3 * 32 + 290 = 386, the tiles' parts; then sums
/// @expect launches 2
/// **Costs.** Workspace for the parts, and a second launch. Not supported: as in register_tile.cu.
/// **Try.** Let the parts be added to dw by atomicAdd, without a second kernel. Is it faster? Run
/// `./ladder compare conv2d_wgrad --data real` twice and compare the bits.
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
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

/// x [N][C][H][W], dy [N][K][P][Q]. Grid (tiles * groups, splits), block (Tile::kShape.threads()).
template <class Tile>
__global__ void __launch_bounds__(Tile::kShape.threads(), Tile::kShape.resident)
    conv2d_wgrad_implicit_gemm_split_k(SplitProduct product, const float* x, const float* dy,
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
  tile.split = static_cast<int>(blockIdx.y);
  tile.pixel_begin = tile.split * product.split_pixels;
  tile.pixel_end = min(product.pixels, tile.pixel_begin + product.split_pixels);
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

  float* dw = sums.dw + tile.split * product.weights();
#pragma unroll
  for (int i = 0; i < Threads::kThreadM; ++i) {
    const int m = place.m + Threads::row(i);
#pragma unroll
    for (int j = 0; j < Threads::kThreadN; ++j) {
      const int column = n0 + place.n + Threads::column(j);
      if (m >= filters || column >= product.columns) continue;
      dw[std::int64_t{first_filter + m} * product.columns + column] = products[i][j];
    }
  }
  if (tile.n == 0 && thread < filters) {
    sums.db[std::int64_t{tile.split} * conv.K + first_filter + thread] = bias_sum;
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
  return {Tile::kShape, teraflops, conv2d_wgrad_implicit_gemm_split_k<Tile>};
}

/// The kernel with the least estimated time.
std::pair<Choice, Plan> choose(const Conv2dProblem& conv) {
  const Choice choices[] = {choice_of<SmallTile>(32), choice_of<TallTile>(34),
                            choice_of<LargeTile>(36)};
  std::pair<Choice, Plan> best;
  best.second.microseconds = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    const Plan plan = plan_for(conv, choice.shape, choice.teraflops, kStep, kMaxSplits);
    if (plan.microseconds < best.second.microseconds) best = {choice, plan};
  }
  return best;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return too_large_for_ints(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return part_bytes(choose(conv).second.product);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const auto [choice, plan] = choose(conv);
  const SplitProduct& product = plan.product;
  const Sums sums = sums_of(product, arrays, context);
  const dim3 grid(static_cast<unsigned>(product.tiles_m * product.tiles_n * conv.groups),
                  static_cast<unsigned>(product.splits));
  launch(choice.kernel, {grid, static_cast<unsigned>(choice.shape.threads())}, product, arrays.x,
         arrays.dy, sums);
  launch_add_parts(product, sums, false, arrays);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const auto [choice, plan] = choose(conv);
  return text(in_words(choice.shape), ", ", parts_in_words(plan.product));
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_split_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
