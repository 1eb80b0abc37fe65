/// @file implicit_gemm_split_k.cu
/// @brief conv2d_wgrad: the long sums are cut into parts, for as many blocks as the GPU holds.
///
/// - Before: implicit_gemm.cu
/// - After: implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** A weight gradient has few sums, and long ones: dw of problem B4 is 64 x 576, nine
/// tiles, of 100352 terms each. Nine blocks leave 123 of 132 SMs idle. So each sum is cut into
/// parts: block (tile, part) adds up its share of the pixels and leaves the result in the
/// workspace, and a second kernel adds up the parts.
///
///     pixels   0 ....... 1144 .... 2288 ....      100352
///     tile 0   [ part 0 ][ part 1 ][ part 2 ] ... [ part 87 ]     dw = part 0 + part 1 + ...
///     tile 1   [        ][        ][        ]                          always in the same order
///
/// No atomics, and a fixed order: the same input gives the same bits. How many parts? Few leave SMs
/// idle, also in the last wave of blocks; many cost their traffic, and every block begins and ends
/// once. split_k.cuh estimates the time of each number and takes the best. It always assumes an
/// H200: with the numbers of the GPU at hand, the bits of dw would differ from GPU to GPU.
///
/// **Expect.** B4 has nine tiles, six blocks an SM and 88 parts: 792 blocks, all at once. The
/// products take 230 us at 32 TFLOP/s. The parts are 13 MB, written and read once in L2: 7 us; with
/// the launch and the first loads the model expects 250 us. B3: three tiles, 263 parts, 330 us.
/// **Costs.** Workspace for the parts, and a second launch. Declined as by implicit_gemm.cu.
/// **Try.** Let the parts meet in dw by atomicAdd, without a second kernel. Is it faster? Run
/// `./ladder compare conv2d_wgrad --data real` twice and look at the bits.
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

/// x [N][C][H][W], dy [N][K][P][Q]. Grid (tiles * groups, splits), block kTileM * kTileN / 64.
template <int kTileM, int kTileN, int kBlocks>
__global__ void __launch_bounds__(kTileM* kTileN / 64, kBlocks)
    wgrad_split(SplitProduct product, const float* x, const float* dy, Sums parts) {
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

  // This block's part of the sum.
  const int split = static_cast<int>(blockIdx.y);
  const int begin = split * product.split_pixels;
  const int end = min(product.pixels, begin + product.split_pixels);
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

  float* dw = parts.dw + split * product.weights();
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
  if (tile_n == 0 && thread < filters) {
    parts.db[std::int64_t{split} * conv.K + first_filter + thread] = bias_sum;
  }
}

/// A kernel and its tile.
struct Choice {
  TileShape shape;
  void (*kernel)(SplitProduct, const float*, const float*, Sums);
};

/// The kernel with the least estimated time.
std::pair<Choice, SplitProduct> choose(const Conv2dProblem& conv) {
  const Choice choices[] = {{{64, 64, 6, 32}, wgrad_split<64, 64, 6>},
                            {{128, 64, 3, 34}, wgrad_split<128, 64, 3>},
                            {{128, 128, 2, 36}, wgrad_split<128, 128, 2>}};
  std::pair<Choice, SplitProduct> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    const Plan plan = plan_for(conv, choice.shape, kStep, kMaxSplits);
    if (plan.microseconds < least) {
      least = plan.microseconds;
      best = {choice, plan.product};
    }
  }
  return best;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return too_large_for_ints(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) { return part_bytes(choose(conv).second); }

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const auto [choice, product] = choose(conv);
  const Sums parts = sums_of(product, arrays);
  const dim3 grid(static_cast<unsigned>(product.tiles_m * product.tiles_n * conv.groups),
                  static_cast<unsigned>(product.splits));
  launch(choice.kernel, {grid, static_cast<unsigned>(choice.shape.threads())}, product,
         arrays.in<float>("x"), arrays.in<float>("dy"), parts);
  launch_add_parts(product, parts, false, arrays);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const auto [choice, product] = choose(conv);
  return text(in_words(choice.shape), ", ", parts_in_words(product));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_split_k() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
