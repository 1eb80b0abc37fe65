/// @file nhwc_tiled.cu
/// @brief Depthwise NHWC tile: all pixels of x (to shared memory) and dy (to registers) are in
/// flight at once.
///
/// - Before: nhwc.cu
/// - Tiles and patches: cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** In the previous rung, a thread loads a segment of dy and a row of x, uses them,
/// and loads the next: it waits for memory eight times. Here a block starts the loads of its whole
/// tile at once, and waits once. A pixel of x is used in up to nine products and is copied to
/// shared memory. Each pixel of dy is read by one lane alone, 7 x 7 pairs of channels, and is
/// loaded into registers.
///
///     x    16 x 16 pixels of 64 channels, in shared memory, with zeros around the image
///     dy   four warps, each with a patch of 7 x 7 in registers; a lane has two channels
///
/// A row of x is multiplied by three rows of dy, and the lane has 2 x 10 accumulators. The sums of
/// the four warps are added in shared memory, in the space of the tile; those of blocks in the
/// workspace. The second kernel starts early by programmatic dependent launch.
///
/// **Expect.** B12 (32x512x14x14, 3x3): 256 blocks, each with one image's tile, two per SM. 81
/// loads of x and 49 of dy for 882 products and 98 sums of db, which is the forward pass without
/// stores; parts of 0.65 MB instead of 1.3 MB. Predicted on an H200: 5.5 us in half precision, 7 us
/// in floats.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect lanes.x.load 0, copies alone
/// @expect loads_per_output.x 14 * 14 * 32 / 1280 = 4.9, each vector once
/// @expect loads_per_output.dy 14 * 14 * 64 / 1280 = 9.8, each pair once
/// @expect launches 2
/// **Costs.** Workspace for the blocks' partial sums. Channels in pieces of 16 bytes; fewer than 64
/// leave lanes idle. What is compiled and what is not supported: as before.
/// **Try.** Blocks of eight images could be a cluster, and add their sums in shared memory. How
/// much smaller are the parts, and what does the second kernel still cost?
#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

namespace channel_tiles = conv2d::channel_tiles;
using channel_tiles::add_product, channel_tiles::kChannels, channel_tiles::kColumns;

constexpr int kThreads = 256;                 ///< Of the kernel for any filter.
constexpr int kAdders = 8;                    ///< Threads that add up one sum of all splits.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// How tiles of dy are dealt out.
struct Plan {
  int channel_tiles;  ///< Of kChannels.
  int splits;         ///< Blocks that share these channels' tiles.
  int down, across;   ///< Tiles of an image.
  FastDivision by_across, by_down;
  std::int64_t tiles;  ///< Of all images.

  Plan(const Conv2dProblem& conv, int tile_rows)
      : channel_tiles(ceil_div(conv.C, kChannels)), down(ceil_div(conv.P, tile_rows)),
        across(ceil_div(conv.Q, channel_tiles::kAcross * kColumns)), by_across(across),
        by_down(down), tiles(std::int64_t{conv.N} * down * across) {
    constexpr int kEnoughBlocks = 256;
    splits = static_cast<int>(
        std::clamp<std::int64_t>(tiles, 1, ceil_div(kEnoughBlocks, channel_tiles)));
  }
};

/// x [N][H][W][C], dy [N][P][Q][C]; x at a multiple of 16 bytes, dy of a pair; parts [splits][kTaps
/// * kTaps + 1][C]. Block Shape::kThreads, grid (channel tiles, splits).
template <class T, int kTaps, int kStride>
__global__ void __launch_bounds__(channel_tiles::Shape<kTaps, kStride>::kThreads, 2)
    conv2d_wgrad_depthwise_nhwc_tiled(Conv2dProblem conv, Plan plan, const T* x, const T* dy,
                                      float* parts) {
  using Shape = channel_tiles::Shape<kTaps, kStride>;
  constexpr int kSums = kTaps * kTaps + 1, kWarps = Shape::kThreads / 32;
  T* const pixels = dynamic_shared<T>();  // [kTileRows][kTileColumns][kChannels]
  const channel_tiles::Place<Shape> place;
  const int c0 = static_cast<int>(blockIdx.x) * kChannels, c = c0 + place.c;
  float2 sums[kSums] = {};
  for (int number = static_cast<int>(blockIdx.y); number < plan.tiles; number += plan.splits) {
    const int line = plan.by_across.quotient(number), n = plan.by_down.quotient(line);
    const int row = plan.by_down.remainder(line, n) * Shape::kDown * Shape::kRows;
    const int column = plan.by_across.remainder(number, line) * channel_tiles::kAcross * kColumns;
    channel_tiles::begin_copies<Shape>(x + std::int64_t{n} * conv.H * conv.W * conv.C, conv.H,
                                       conv.W, conv.C, row * kStride - conv.pad.top,
                                       column * kStride - conv.pad.left, c0, pixels);
    channel_tiles::Pair<T> slopes[Shape::kRows][kColumns];
    channel_tiles::load_patch(dy + std::int64_t{n} * conv.P * conv.Q * conv.C, conv.P, conv.Q,
                              conv.C, row + place.row, column + place.column, c, slopes);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // between all copies, by all threads, and the reads below
#pragma unroll
    for (int i = 0; i < Shape::kInRows; ++i) {
      float2 values[Shape::kInColumns];
      channel_tiles::load_row<Shape>(pixels, place.row * kStride + i, place.column * kStride,
                                     place.c, values);
#pragma unroll
      for (int j = 0; j < Shape::kRows; ++j) {
        const int r = i - j * kStride;  // known to the compiler, as i and j are
        if (r < 0 || r >= kTaps) continue;
#pragma unroll
        for (int q = 0; q < kColumns; ++q) {
          const float2 slope = channel_tiles::values_of<T>(slopes[j][q]);
          if (r == 0) add_product(sums[kSums - 1], slope, {1.0f, 1.0f});
#pragma unroll
          for (int s = 0; s < kTaps; ++s)
            add_product(sums[r * kTaps + s], values[q * kStride + s], slope);
        }
      }
    }
    __syncthreads();  // between these reads and the copies of the block's next tile
  }
  auto* const room = reinterpret_cast<float2*>(pixels);  // [warp][sum][lane]
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kSums; ++i) room[(thread / 32 * kSums + i) * 32 + thread % 32] = sums[i];
  __syncthreads();  // between the writes of all warps and the reads below
  for (int i = thread; i < kSums * 32; i += Shape::kThreads) {
    if (c0 + i % 32 * 2 >= conv.C) continue;
    float2 all = {};
    for (int warp = 0; warp < kWarps; ++warp)
      add_product(all, room[warp * kSums * 32 + i], {1.0f, 1.0f});
    const std::int64_t sum = std::int64_t{blockIdx.y} * kSums + i / 32;
    *reinterpret_cast<float2*>(parts + sum * conv.C + c0 + i % 32 * 2) = all;
  }
  let_next_kernel_begin();  // it waits for this one's end
}

/// dw [C][taps] and db [C]: the sums over all splits of parts [splits][taps + 1][C]. Block (32,
/// kAdders): a row of threads adds every kAdders-th split. Any one-dimensional grid.
__global__ void conv2d_wgrad_depthwise_nhwc_tiled_add_splits(int splits, int taps, int C,
                                                             const float* parts, float* dw,
                                                             float* db) {
  __shared__ float room[kAdders][32];
  constexpr int kTogether = 4;  // loaded before the first is added
  const std::int64_t sums = std::int64_t{taps + 1} * C;
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  wait_for_kernel_before();
  for (std::int64_t first = std::int64_t{blockIdx.x} * 32; first < sums;
       first += std::int64_t{gridDim.x} * 32) {
    const std::int64_t i = first + lane;
    float sum = 0.0f;
    for (int split = row; split < splits && i < sums; split += kTogether * kAdders) {
      float more[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int other = split + j * kAdders;
        more[j] = other < splits ? parts[other * sums + i] : 0.0f;
      }
#pragma unroll
      for (const float value : more) sum += value;
    }
    room[row][lane] = sum;
    __syncthreads();  // between the writes of all rows and the reads of the first one
    if (row == 0 && i < sums) {
      for (int other = 1; other < kAdders; ++other) sum += room[other][lane];
      const std::int64_t tap = i / C, c = i % C;
      if (tap < taps) {
        dw[c * taps + tap] = sum;
      } else {
        db[c] = sum;
      }
    }
    __syncthreads();  // between these reads and the next sums' writes
  }
}

/// Any filter, and K / C filters a channel: one thread a sum. Any one-dimensional grid.
template <class T>
__global__ void conv2d_wgrad_depthwise_nhwc_tiled_any(Conv2dProblem conv, const T* x, const T* dy,
                                                      float* dw, float* db) {
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  for (const std::int64_t i : grid_stride((taps + 1) * conv.K)) {
    const std::int64_t tap = i / conv.K, k = i % conv.K, c = k / (conv.K / conv.C);
    const std::int64_t r = tap / conv.S * conv.dilation.h, s = tap % conv.S * conv.dilation.w;
    float sum = 0.0f;
    for (std::int64_t line = 0; line < std::int64_t{conv.N} * conv.P; ++line) {
      const std::int64_t n = line / conv.P, h = line % conv.P * conv.stride.h - conv.pad.top + r;
      if (tap < taps && (h < 0 || h >= conv.H)) continue;
      for (std::int64_t q = 0; q < conv.Q; ++q) {
        const std::int64_t w = q * conv.stride.w - conv.pad.left + s;
        if (tap < taps && (w < 0 || w >= conv.W)) continue;
        float slope = to_float(dy[(line * conv.Q + q) * conv.K + k]);
        if (tap < taps) slope *= to_float(x[((n * conv.H + h) * conv.W + w) * conv.C + c]);
        sum += slope;
      }
    }
    if (tap < taps) {
      dw[k * taps + tap] = sum;
    } else {
      db[k] = sum;
    }
  }
}

Declined supports(const Conv2dProblem& conv) { return channel_tiles::not_depthwise(conv); }

/// A kernel for the filter's size, and what its blocks take; null for any other.
template <class T>
struct Choice {
  void (*kernel)(Conv2dProblem, Plan, const T*, const T*, float*) = nullptr;
  int tile_rows = 1;             ///< of dy
  unsigned threads = 0;          ///< of a block
  std::size_t shared_bytes = 0;  ///< likewise
};

template <class T, int kTaps, int kStride>
Choice<T> kernel_with() {
  using Shape = channel_tiles::Shape<kTaps, kStride>;
  // The sums of all threads take the tile's place in the end.
  constexpr std::size_t kSumBytes = sizeof(float2) * (kTaps * kTaps + 1) * Shape::kThreads;
  const std::size_t bytes = std::max(channel_tiles::shared_bytes<Shape, T>(0), kSumBytes);
  if (bytes > max_shared_bytes()) return {};
  return {conv2d_wgrad_depthwise_nhwc_tiled<T, kTaps, kStride>, Shape::kDown * Shape::kRows,
          Shape::kThreads, bytes};
}

template <class T>
Choice<T> choose(const Conv2dProblem& conv) {
  if (!channel_tiles::has_pieces<T>(conv) || conv.stride.h != conv.stride.w) return {};
  if (conv.R == 3 && conv.stride.h == 1) return kernel_with<T, 3, 1>();
  if (conv.R == 3 && conv.stride.h == 2) return kernel_with<T, 3, 2>();
  if (conv.R == 5 && conv.stride.h == 1) return kernel_with<T, 5, 1>();
  return {};
}

/// Blocks that share a tile of channels; none where no kernel is for the problem.
int splits_of(const Conv2dProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) {
    const Choice<T> choice = choose<T>(conv);
    return choice.kernel != nullptr ? Plan(conv, choice.tile_rows).splits : 0;
  });
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(splits_of(conv)) *
         (static_cast<std::size_t>(conv.R) * static_cast<std::size_t>(conv.S) + 1) *
         static_cast<std::size_t>(conv.C) * sizeof(float);
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const T *x = arrays.x, *dy = arrays.dy;
  float* dw = arrays.dw;
  float* db = arrays.db;
  const int taps = conv.R * conv.S;
  const Choice<T> choice = choose<T>(conv);
  const std::int64_t sums = (std::int64_t{taps} + 1) * conv.K;
  if (choice.kernel != nullptr && channel_tiles::are_aligned(x, dy)) {
    const Plan plan(conv, choice.tile_rows);
    auto* parts = context.workspace_as<float>();
    launch(choice.kernel,
           {dim3(static_cast<unsigned>(plan.channel_tiles), static_cast<unsigned>(plan.splits)),
            dim3(choice.threads), choice.shared_bytes},
           conv, plan, x, dy, parts);
    launch_early(conv2d_wgrad_depthwise_nhwc_tiled_add_splits,
                 {dim3(blocks_for(sums, 32, kMaxBlocks)), dim3(32, kAdders)}, plan.splits, taps,
                 conv.C, static_cast<const float*>(parts), dw, db);
  } else {
    launch(conv2d_wgrad_depthwise_nhwc_tiled_any<T>,
           {blocks_for(sums, kThreads, kMaxBlocks), kThreads}, conv, x, dy, dw, db);
  }
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays, context); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const int splits = splits_of(conv);
  if (splits == 0) return "any filter, one sum a thread";
  return text(conv.R, " x ", conv.S, ", stride ", conv.stride.h, ", in tiles, ",
              how_many(splits, "block"), " a tile of channels");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> depthwise_nhwc_tiled = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
