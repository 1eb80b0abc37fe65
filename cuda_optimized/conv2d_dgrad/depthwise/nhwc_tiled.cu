/// @file nhwc_tiled.cu
/// @brief Depthwise NHWC tile in shared memory: all pixels of dy of a block are copied
/// asynchronously at once.
///
/// - Before: nhwc.cu
/// - Tiles and patches: cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh
/// - The forward pass: cuda_optimized/conv2d/depthwise/nhwc_tiled.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1, dx is dy convolved with the reversed filter, so the forward pass's
/// tiling applies: a block starts the copies of all pixels of dy that it reads to shared memory at
/// once, and waits once.
///
///     16 x 16 pixels of 64 channels      four warps, each with a patch of 7 x 7 of dx
///
/// A row of dy contributes first to the row of dx below it, and last to the one above it: that row
/// is complete, and stored, after the filter's first row has been applied to it.
///
/// **Expect.** B12 (32x512x14x14, 3x3): the time of the forward pass. Predicted on an H200: 4.5 us
/// in half precision, 5.5 us in floats.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect lanes.dy.load 0, copies alone
/// @expect bytes_per_lane.dy.async 16
/// @expect loads_per_output.dy 1 / 4 = 0.25, each pixel once, in vectors of four
/// @expect loads_per_output.shared (81 + 9) / 98 = 0.9184, pairs of dy and of filters
/// @expect barriers_per_block 2
/// **Costs.** Channels in pieces of 16 bytes; fewer than 64 leave lanes idle. What is compiled and
/// what is not supported: as before.
/// **Try.** Stride 2: which pixels of dy does a tile of dx read? Does the tile in shared memory
/// become larger or smaller?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

namespace channel_tiles = conv2d::channel_tiles;
using channel_tiles::kColumns, channel_tiles::Plan, channel_tiles::Tile;

constexpr int kThreads = 256;                 ///< Of the kernel for any filter.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// dy [N][P][Q][C], weights [C][kTaps][kTaps], dx [N][H][W][C]; dy at a multiple of 16 bytes, dx of
/// a pair. Stride 1. Block Shape::kThreads, any one-dimensional grid.
template <class T, int kTaps>
__global__ void __launch_bounds__(channel_tiles::Shape<kTaps, 1>::kThreads, 2)
    conv2d_dgrad_depthwise_nhwc_tiled(Conv2dProblem conv, Plan plan, const T* dy, const T* weights,
                                      T* dx) {
  using Shape = channel_tiles::Shape<kTaps, 1>;
  constexpr int kOutRows = Shape::kRows, kInRows = Shape::kInRows;
  T* const pixels = dynamic_shared<T>();     // [kTileRows][kTileColumns][kChannels]
  T* const filters = pixels + Shape::kTile;  // [kChannels][kTaps][kTaps]
  const channel_tiles::Place<Shape> place;
  for (int number = static_cast<int>(blockIdx.x); number < plan.tiles;
       number += static_cast<int>(gridDim.x)) {
    const Tile tile(plan, number, Shape::kDown * kOutRows);
    channel_tiles::begin_copies<Shape>(dy + std::int64_t{tile.n} * conv.P * conv.Q * conv.C, conv.P,
                                       conv.Q, conv.C, tile.row + conv.pad.top - (kTaps - 1),
                                       tile.column + conv.pad.left - (kTaps - 1), tile.c, pixels);
    channel_tiles::copy_filters<kTaps * kTaps, Shape::kThreads>(weights, tile.c, conv.C, filters);
    const int row = tile.row + place.row, column = tile.column + place.column;
    const int c = tile.c + place.c;
    const bool works = c < conv.C && row < conv.H && column < conv.W;
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // between all copies, by all threads, and the reads below
    if (works) {
      float2 taps[kTaps * kTaps], sums[kOutRows][kColumns] = {};
      channel_tiles::load_filters(filters, place.c, taps);
#pragma unroll
      for (int i = 0; i < kInRows; ++i) {
        float2 values[Shape::kInColumns];
        channel_tiles::load_row<Shape>(pixels, place.row + i, place.column, place.c, values);
#pragma unroll
        for (int j = 0; j < kOutRows; ++j) {
          const int r = kTaps - 1 - (i - j);  // known to the compiler, as i and j are
          if (r < 0 || r >= kTaps) continue;
#pragma unroll
          for (int s = 0; s < kTaps; ++s) {
#pragma unroll
            for (int w = 0; w < kColumns; ++w) {
              channel_tiles::add_product(sums[j][w], values[w + kTaps - 1 - s],
                                         taps[r * kTaps + s]);
            }
          }
          if (r > 0 || row + j >= conv.H) continue;  // else these sums are complete
          T* const to =
              dx + ((std::int64_t{tile.n} * conv.H + row + j) * conv.W + column) * conv.C + c;
          channel_tiles::store_row(to, conv.W - column, conv.C, Activation::none, sums[j]);
        }
      }
    }
    __syncthreads();  // between these reads and the copies of the block's next tile
  }
}

/// Any filter, and K / C filters a channel: one thread an element. Any one-dimensional grid.
template <class T>
__global__ void conv2d_dgrad_depthwise_nhwc_tiled_any(Conv2dProblem conv, const T* dy,
                                                      const T* weights, T* dx) {
  const int multiplier = conv.K / conv.C;
  const std::int64_t count = std::int64_t{conv.N} * conv.H * conv.W * conv.C;
  for (const std::int64_t i : grid_stride(count)) {
    const int c = static_cast<int>(i % conv.C);
    const std::int64_t pixel = i / conv.C;
    const int w = static_cast<int>(pixel % conv.W), h = static_cast<int>(pixel / conv.W % conv.H);
    const std::int64_t n = pixel / conv.W / conv.H;
    float sum = 0.0f;
    for (int r = 0; r < conv.R; ++r) {
      const int down = h + conv.pad.top - r * conv.dilation.h;  // p * stride
      if (down < 0 || down % conv.stride.h != 0 || down / conv.stride.h >= conv.P) continue;
      for (int s = 0; s < conv.S; ++s) {
        const int across = w + conv.pad.left - s * conv.dilation.w;
        if (across < 0 || across % conv.stride.w != 0 || across / conv.stride.w >= conv.Q) continue;
        const std::int64_t from =
            (n * conv.P + down / conv.stride.h) * conv.Q + across / conv.stride.w;
        for (int m = 0; m < multiplier; ++m) {
          const std::int64_t k = std::int64_t{c} * multiplier + m;
          sum += to_float(dy[from * conv.K + k]) * to_float(weights[(k * conv.R + r) * conv.S + s]);
        }
      }
    }
    dx[i] = rounded_to<T>(sum);
  }
}

Declined supports(const Conv2dProblem& conv) { return channel_tiles::not_depthwise(conv); }

/// A kernel for the filter's size, and what its blocks take; null for any other.
template <class T>
struct Choice {
  void (*kernel)(Conv2dProblem, Plan, const T*, const T*, T*) = nullptr;
  int tile_rows = 1;             ///< of dx
  unsigned threads = 0;          ///< of a block
  std::size_t shared_bytes = 0;  ///< likewise
};

template <class T, int kTaps>
Choice<T> kernel_with() {
  using Shape = channel_tiles::Shape<kTaps, 1>;
  const std::size_t bytes = channel_tiles::shared_bytes<Shape, T>(kTaps * kTaps);
  if (bytes > max_shared_bytes()) return {};
  return {conv2d_dgrad_depthwise_nhwc_tiled<T, kTaps>, Shape::kDown * Shape::kRows, Shape::kThreads,
          bytes};
}

template <class T>
Choice<T> choose(const Conv2dProblem& conv) {
  if (!channel_tiles::has_pieces<T>(conv) || conv.stride.h != 1 || conv.stride.w != 1) return {};
  if (conv.R == 3) return kernel_with<T, 3>();
  if (conv.R == 5) return kernel_with<T, 5>();
  return {};
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays) {
  const T *dy = arrays.dy, *weights = arrays.weights;
  T* dx = arrays.dx;
  const Choice<T> choice = choose<T>(conv);
  if (choice.kernel != nullptr && channel_tiles::are_aligned(dy, dx)) {
    const Plan plan(conv.N, conv.C, conv.H, conv.W, choice.tile_rows);
    launch(choice.kernel,
           {dim3(blocks_for(plan.tiles, 1, kMaxBlocks)), dim3(choice.threads), choice.shared_bytes},
           conv, plan, dy, weights, dx);
  } else {
    const std::int64_t elements = std::int64_t{conv.N} * conv.H * conv.W * conv.C;
    launch(conv2d_dgrad_depthwise_nhwc_tiled_any<T>,
           {blocks_for(elements, kThreads, kMaxBlocks), kThreads}, conv, dy, weights, dx);
  }
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool in_tiles =
      with_float_type(conv.dtype, [&]<class T>(T) { return choose<T>(conv).kernel != nullptr; });
  if (!in_tiles) return "any filter, one element a thread";
  return text(conv.R, " x ", conv.S, ", in tiles");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> depthwise_nhwc_tiled = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
