/// @file nhwc_tiled.cu
/// @brief Depthwise NHWC tile in shared memory: all pixels of a block are copied asynchronously at
/// once.
///
/// - Before: nhwc.cu
/// - Tiles and patches: shared/depthwise/nhwc_tiles.cuh
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** In the previous rung, a thread waits for memory four times, once per row of x,
/// because registers for all four rows are not available. `cp.async` copies to shared memory
/// without registers: a block starts the copies of all pixels that it reads, with zeros around the
/// image, and waits once.
///
///     16 x 16 pixels of 64 channels      four warps, each with a patch of 7 x 7 outputs
///     0 0 0 0 0 ... 0                    [ 7 x 7 ] [ 7 x 7 ]     a lane has two channels
///     0 x x x x ... 0                    [ 7 x 7 ] [ 7 x 7 ]     and goes down the rows
///
/// A warp reads 64 contiguous channels of a pixel, from 32 different banks. A row of x contributes
/// to three rows of accumulators, and a row of accumulators is stored as soon as it is complete.
/// The filters keep their order of memory: a lane's two are 9 pairs of floats apart, an odd number,
/// and so in another bank for each lane.
///
/// **Expect.** B12 (32x512x14x14, 3x3): 256 blocks, two per SM. For 98 outputs, 81 loads of x
/// instead of 126 (a patch of 2 rows has 36 for 28), 882 multiply-adds, 49 stores; with the copies
/// some 1700 instructions, of 8 warps per SM. Predicted on an H200: 4.5 us in half precision, 5.5
/// us in floats.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect lanes.x.load 0, copies alone
/// @expect bytes_per_lane.x.async 16
/// @expect loads_per_output.x 1 / 4 = 0.25, each pixel once, in vectors of four
/// @expect loads_per_output.shared (81 + 9) / 98 = 0.9184, pairs of x and of filters
/// @expect barriers_per_block 2
/// **Costs.** Only other blocks compute while a tile is in flight. Channels in pieces of 16 bytes;
/// fewer than 64 leave lanes idle. What is compiled and what is not supported: as before.
/// **Try.** Let warps begin when their rows have arrived, with a barrier per pair of rows. Why does
/// it take longer?
#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using channel_tiles::kColumns, channel_tiles::Plan, channel_tiles::Tile;

constexpr int kThreads = 256;                 ///< Of the kernel for any filter.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// x [N][H][W][C], weights [C][kTaps][kTaps], bias [C] or null, y [N][P][Q][C]; x at a multiple of
/// 16 bytes, y of a pair. Block Shape::kThreads, any one-dimensional grid.
template <class T, int kTaps, int kStride>
__global__ void __launch_bounds__(channel_tiles::Shape<kTaps, kStride>::kThreads, 2)
    conv2d_depthwise_nhwc_tiled(Conv2dProblem conv, Plan plan, const T* x, const T* weights,
                                const float* bias, T* y) {
  using Shape = channel_tiles::Shape<kTaps, kStride>;
  constexpr int kOutRows = Shape::kRows, kInRows = Shape::kInRows;
  T* const pixels = dynamic_shared<T>();     // [kTileRows][kTileColumns][kChannels]
  T* const filters = pixels + Shape::kTile;  // [kChannels][kTaps][kTaps]
  const channel_tiles::Place<Shape> place;
  for (int number = static_cast<int>(blockIdx.x); number < plan.tiles;
       number += static_cast<int>(gridDim.x)) {
    const Tile tile(plan, number, Shape::kDown * kOutRows);
    channel_tiles::begin_copies<Shape>(x + std::int64_t{tile.n} * conv.H * conv.W * conv.C, conv.H,
                                       conv.W, conv.C, tile.row * kStride - conv.pad.top,
                                       tile.column * kStride - conv.pad.left, tile.c, pixels);
    channel_tiles::copy_filters<kTaps * kTaps, Shape::kThreads>(weights, tile.c, conv.C, filters);
    const int row = tile.row + place.row, column = tile.column + place.column;
    const int c = tile.c + place.c;
    const bool works = c < conv.C && row < conv.P && column < conv.Q;
    const float2 start = works && bias != nullptr ? float2{bias[c], bias[c + 1]} : float2{};
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // between all copies, by all threads, and the reads below
    if (works) {
      float2 taps[kTaps * kTaps], sums[kOutRows][kColumns];
      channel_tiles::load_filters(filters, place.c, taps);
#pragma unroll
      for (int j = 0; j < kOutRows; ++j) {
#pragma unroll
        for (int q = 0; q < kColumns; ++q) sums[j][q] = start;
      }
#pragma unroll
      for (int i = 0; i < kInRows; ++i) {
        float2 values[Shape::kInColumns];
        channel_tiles::load_row<Shape>(pixels, place.row * kStride + i, place.column * kStride,
                                       place.c, values);
#pragma unroll
        for (int j = 0; j < kOutRows; ++j) {
          const int r = i - j * kStride;  // known to the compiler, as i and j are
          if (r < 0 || r >= kTaps) continue;
#pragma unroll
          for (int s = 0; s < kTaps; ++s) {
#pragma unroll
            for (int q = 0; q < kColumns; ++q)
              channel_tiles::add_product(sums[j][q], values[q * kStride + s], taps[r * kTaps + s]);
          }
          if (r == kTaps - 1 && row + j < conv.P) {  // these sums are complete
            T* const to =
                y + ((std::int64_t{tile.n} * conv.P + row + j) * conv.Q + column) * conv.C + c;
            channel_tiles::store_row(to, conv.Q - column, conv.C, conv.activation, sums[j]);
          }
        }
      }
    }
    __syncthreads();  // between these reads and the copies of the block's next tile
  }
}

/// Any filter, and K / C filters a channel: one thread an output. Any one-dimensional grid.
template <class T>
__global__ void conv2d_depthwise_nhwc_tiled_any(Conv2dProblem conv, const T* x, const T* weights,
                                                const float* bias, T* y) {
  const std::int64_t count = std::int64_t{conv.N} * conv.P * conv.Q * conv.K;
  for (const std::int64_t i : grid_stride(count)) {
    const int k = static_cast<int>(i % conv.K), c = k / (conv.K / conv.C);
    const std::int64_t pixel = i / conv.K;
    const int q = static_cast<int>(pixel % conv.Q), p = static_cast<int>(pixel / conv.Q % conv.P);
    const std::int64_t n = pixel / conv.Q / conv.P;
    float sum = bias ? bias[k] : 0.0f;
    for (int r = 0; r < conv.R; ++r) {
      const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
      if (static_cast<unsigned>(h) >= static_cast<unsigned>(conv.H)) continue;
      for (int s = 0; s < conv.S; ++s) {
        const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
        if (static_cast<unsigned>(w) >= static_cast<unsigned>(conv.W)) continue;
        sum += to_float(x[((n * conv.H + h) * conv.W + w) * conv.C + c]) *
               to_float(weights[(std::int64_t{k} * conv.R + r) * conv.S + s]);
      }
    }
    y[i] = rounded_to<T>(activated(conv.activation, sum));
  }
}

Declined supports(const Conv2dProblem& conv) { return channel_tiles::not_depthwise(conv); }

/// A kernel for the filter's size, and what its blocks take; null for any other.
template <class T>
struct Choice {
  void (*kernel)(Conv2dProblem, Plan, const T*, const T*, const float*, T*) = nullptr;
  int tile_rows = 1;             ///< of outputs
  unsigned threads = 0;          ///< of a block
  std::size_t shared_bytes = 0;  ///< likewise
};

template <class T, int kTaps, int kStride>
Choice<T> kernel_with() {
  using Shape = channel_tiles::Shape<kTaps, kStride>;
  const std::size_t bytes = channel_tiles::shared_bytes<Shape, T>(kTaps * kTaps);
  if (bytes > max_shared_bytes()) return {};
  return {conv2d_depthwise_nhwc_tiled<T, kTaps, kStride>, Shape::kDown * Shape::kRows,
          Shape::kThreads, bytes};
}

template <class T>
Choice<T> choose(const Conv2dProblem& conv) {
  if (!channel_tiles::has_pieces<T>(conv) || conv.stride.h != conv.stride.w) return {};
  if (conv.R == 3 && conv.stride.h == 1) return kernel_with<T, 3, 1>();
  if (conv.R == 3 && conv.stride.h == 2) return kernel_with<T, 3, 2>();
  if (conv.R == 5 && conv.stride.h == 1) return kernel_with<T, 5, 1>();
  if (conv.R == 5 && conv.stride.h == 2) return kernel_with<T, 5, 2>();
  return {};
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dArrays& arrays) {
  const T *x = arrays.x, *weights = arrays.weights;
  const float* bias = arrays.bias;
  T* y = arrays.y;
  const Choice<T> choice = choose<T>(conv);
  if (choice.kernel != nullptr && channel_tiles::are_aligned(x, y)) {
    const Plan plan(conv.N, conv.C, conv.P, conv.Q, choice.tile_rows);
    launch(choice.kernel,
           {dim3(blocks_for(plan.tiles, 1, kMaxBlocks)), dim3(choice.threads), choice.shared_bytes},
           conv, plan, x, weights, bias, y);
  } else {
    const std::int64_t outputs = std::int64_t{conv.N} * conv.P * conv.Q * conv.K;
    launch(conv2d_depthwise_nhwc_tiled_any<T>,
           {blocks_for(outputs, kThreads, kMaxBlocks), kThreads}, conv, x, weights, bias, y);
  }
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays); });
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const bool in_tiles =
      with_float_type(conv.dtype, [&]<class T>(T) { return choose<T>(conv).kernel != nullptr; });
  if (!in_tiles) return "any filter, one output a thread";
  return text(conv.R, " x ", conv.S, ", stride ", conv.stride.h, ", in tiles",
              idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> depthwise_nhwc_tiled = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
