/// @file implicit_gemm.cu
/// @brief conv2d_wgrad as one matrix product whose columns are found by index arithmetic.
///
/// - Before: im2col_gemm.cu
/// - After: implicit_gemm_split_k.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** The product of im2col_gemm.cu, but no column is stored. All images together are
/// one long sum: pixel l is output (p, q) of image n, and a column is tap (r, s) of channel c. They
/// meet in x[n, c, p * stride - pad + r * dilation, ...], which is found when a tile is filled:
///
///                  N*P*Q                       C/G*R*S             C/G*R*S
///          [ dy, along l -> ]            [ x, along l | ]        [        ]
///     K/G  [                ]  x  N*P*Q  [            v ]  = K/G [   dw   ]
///
/// Both operands lie *along the sum* in memory: neighbouring pixels are neighbours, but the rows,
/// filters of dy and columns of x, are far apart. A thread multiplies 8 filters by 8 columns of one
/// pixel and needs those side by side. So tiles are turned on their way into shared memory: a warp
/// loads 8 pixels of 4 rows, and stores [pixel][row]. Where an element lies is found in pieces: a
/// column's channel and tap once for the block, a pixel's n, p, q once a step for all columns that
/// the thread loads. db comes for free: the blocks of the first columns add up their tiles of dy.
///
/// **Expect.** For each 64 multiply-adds 4 loads of float4, as in a matrix product; for each
/// element some ten instructions to find it, a fifth of all. And few blocks: B10's dw has 144 tiles
/// for 132 SMs, B4's nine of 64 x 64, B3's three. So B10 takes some 10 ms, B4 longer than with
/// im2col_gemm.
/// **Costs.** Whole tiles are computed. Declined: other layouts than NCHW, other types than
/// float32, 2^31 pixels, columns or inputs of a group.
/// **Try.** Store the tiles as they lie, [row][pixel] with a pitch of 12. How many loads of shared
/// memory does a step take now?
#include "core/conv2d_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d_wgrad/split_k.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kStep = 8;  ///< Pixels that a block multiplies between two barriers.
constexpr int kPad = 4;   ///< Floats behind each row of a tile: 4 more than a multiple of 32 banks.

/// A column of the product: a tap of a channel.
struct Column {
  int x;     ///< Its offset from the first tap of the group's first channel.
  int h, w;  ///< Its place in the window, rows and columns of x.
};

__device__ Column column_at(const SplitProduct& product, int column) {
  const Conv2dProblem& conv = product.conv;
  if (column >= product.columns) return {0, -(1 << 30), 0};  // never in x
  const int c = column / (conv.R * conv.S), tap = column % (conv.R * conv.S);
  const int h = tap / conv.S * conv.dilation.h, w = tap % conv.S * conv.dilation.w;
  return {(c * conv.H + h) * conv.W + w, h, w};
}

/// x [N][C][H][W], dy [N][K][P][Q]. Grid (tiles * groups), block kTileM * kTileN / 64.
template <int kTileM, int kTileN, int kBlocks>
__global__ void __launch_bounds__(kTileM* kTileN / 64, kBlocks)
    wgrad_implicit(SplitProduct product, const float* x, const float* dy, float* dw, float* db) {
  using Threads = gemm::ThreadTile<kTileM, kTileN, kStep>;
  constexpr int kRows = Threads::kThreads / kStep;  // of a tile, that the block loads at a time
  constexpr int kLoadsA = kTileM / kRows, kLoadsB = kTileN / kRows;  // of a thread
  __shared__ float4 a_storage[2 * kStep * (kTileM + kPad) / 4];      // float4: for its alignment
  __shared__ float4 b_storage[2 * kStep * (kTileN + kPad) / 4];
  __shared__ Column columns[kTileN];
  auto* const a = reinterpret_cast<float(*)[kStep][kTileM + kPad]>(a_storage);  // dy, transposed
  auto* const b = reinterpret_cast<float(*)[kStep][kTileN + kPad]>(b_storage);  // x, transposed

  const Conv2dProblem& conv = product.conv;
  const int thread = static_cast<int>(threadIdx.x);
  const int tiles = static_cast<int>(blockIdx.x);
  const int tile_n = tiles % product.tiles_n, tile_m = tiles / product.tiles_n % product.tiles_m;
  const int group = tiles / product.tiles_n / product.tiles_m;
  const int m0 = tile_m * kTileM, n0 = tile_n * kTileN;
  const int first_filter = group * product.group_k + m0;
  const int filters = min(kTileM, product.group_k - m0);
  const std::int64_t x_plane = std::int64_t{conv.H} * conv.W;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  for (int i = thread; i < kTileN; i += Threads::kThreads) columns[i] = column_at(product, n0 + i);
  __syncthreads();  // between these writes and their reads

  const int begin = 0, end = product.pixels;
  const int pixel = thread % kStep, row0 = thread / kStep;
  float a_next[kLoadsA], b_next[kLoadsB];
  // The elements of the step that begins at `first`; zeros beyond the ends of the sum, the filters
  // and x.
  const auto fetch = [&](int first) {
    const int l = first + pixel;
    const int n = product.plane.quotient(l), place = product.plane.remainder(l, n);
    const int p = product.row.quotient(place), q = product.row.remainder(place, p);
    const bool inside_sum = l < end;
    const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
    const std::int64_t window = (std::int64_t{n} * conv.C + group * product.group_c) * x_plane +
                                std::int64_t{h} * conv.W + w;
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      const Column column = columns[row0 + i * kRows];
      // Negative coordinates turn into huge ones, so that one comparison checks both ends.
      const bool inside = inside_sum &&
                          static_cast<unsigned>(h + column.h) < static_cast<unsigned>(conv.H) &&
                          static_cast<unsigned>(w + column.w) < static_cast<unsigned>(conv.W);
      b_next[i] = inside ? x[window + column.x] : 0.0f;
    }
    const std::int64_t from = (std::int64_t{n} * conv.K + first_filter) * y_plane + place;
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int m = row0 + i * kRows;
      a_next[i] = inside_sum && m < filters ? dy[from + m * y_plane] : 0.0f;
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) a[buffer][pixel][row0 + i * kRows] = a_next[i];
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) b[buffer][pixel][row0 + i * kRows] = b_next[i];
  };

  const Threads place(threadIdx.x);
  float sums[Threads::kThreadM][Threads::kThreadN] = {};
  float bias_sum = 0.0f;
  int buffer = 0;
  if (begin < end) {
    fetch(begin);
    store(buffer);
  }
  for (int first = begin; first < end; first += kStep) {
    // The one barrier: between the writes of this step's tiles and the reads below. It also stands
    // between the reads of the other tiles, a step ago, and the writes into them at the end of
    // this.
    __syncthreads();
    const bool has_next = first + kStep < end;
    if (has_next) fetch(first + kStep);
    if (tile_n == 0 && thread < kTileM) {
#pragma unroll
      for (int k = 0; k < kStep; ++k) bias_sum += a[buffer][k][thread];
    }
    place.template multiply<kTileM + kPad, kTileN + kPad>(&a[buffer][0][0], &b[buffer][0][0], sums);
    buffer ^= 1;
    if (has_next) store(buffer);
  }

#pragma unroll
  for (int i = 0; i < Threads::kThreadM; ++i) {
    const int m = place.m + Threads::row(i);
#pragma unroll
    for (int j = 0; j < Threads::kThreadN; ++j) {
      const int column = n0 + place.n + Threads::column(j);
      if (m >= filters || column >= product.columns) continue;
      dw[std::int64_t{first_filter + m} * product.columns + column] = sums[i][j];
    }
  }
  if (tile_n == 0 && thread < filters) db[first_filter + thread] = bias_sum;
}

/// A kernel and its tile.
struct Choice {
  TileShape shape;
  void (*kernel)(SplitProduct, const float*, const float*, float*, float*);
};

/// The larger tile loads less for each product, if there are filters to fill it.
Choice choose(const Conv2dProblem& conv) {
  if (conv.K / conv.groups > 64) return {{128, 128, 2, 36}, wgrad_implicit<128, 128, 2>};
  return {{64, 64, 6, 32}, wgrad_implicit<64, 64, 6>};
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return too_large_for_ints(conv);
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Choice choice = choose(conv);
  const SplitProduct product = plan_for(conv, choice.shape, kStep, 1).product;
  const std::int64_t tiles = std::int64_t{product.tiles_m} * product.tiles_n * conv.groups;
  launch(choice.kernel,
         {static_cast<unsigned>(tiles), static_cast<unsigned>(choice.shape.threads())}, product,
         arrays.in<float>("x"), arrays.in<float>("dy"), arrays.out<float>("dw"),
         arrays.out<float>("db"));
}

std::string choice_in_words(const Conv2dProblem& conv) { return in_words(choose(conv).shape); }

}  // namespace

Implementation<Conv2dProblem> implicit_gemm() {
  return {.supports = supports, .run = run, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
