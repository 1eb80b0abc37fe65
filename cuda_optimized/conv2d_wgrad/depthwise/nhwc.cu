/// @file nhwc.cu
/// @brief Depthwise NHWC: each thread keeps the accumulators of four channels in registers.
///
/// - Before: nchw.cu
/// - After: nhwc_tiled.cu
/// - The rows of vectors: cuda_optimized/conv2d/shared/depthwise/nhwc_rows.cuh
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** A filter's gradient is R * S sums over all pixels of its channel, and one more for
/// db. In NHWC four adjacent channels are a vector: a thread keeps their 4 x 10 accumulators in
/// registers, and steps through *segments*, 7 pixels of a row of dy and the 9 of each row of x that
/// their windows read. Nothing is gathered, every load is 512 bytes per warp, and a segment of dy
/// is used for all of its taps.
///
///     dy  p      [ d d d d d d d ]          x  p-1   [ v v v v v v v v v ]   one row of x
///     sums       r = 0:  s = 0, 1, 2        x  p     [ . . . . . . . . . ]   at a time
///                r = 1:  s = 0, 1, 2        x  p+1   [ . . . . . . . . . ]
///
/// A channel tile's segments are distributed over blocks and their rows of threads. The rows' sums
/// are added in shared memory, the blocks' in the workspace, in a fixed order.
///
/// **Expect.** B12 (32x512x14x14, 3x3): 896 segments for each of 4 tiles of channels; 34 vectors
/// loaded for 63 x 4 products and 7 x 4 accumulators of db. 136 clocks of requests per segment are
/// 2 us on 132 SMs; with the partial sums of 56 blocks per tile, 1.1 MB, added by a second kernel:
/// predicted on an H200 9 us; in half precision 8 us, since the sums stay floats.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect bytes_per_lane.x.load 16
/// @expect sectors_per_request.dy.load 16
/// @expect loads_per_output.dy 14 * 14 * 32 / 1280 = 4.9, each vector once
/// @expect launches 2
/// **Costs.** Workspace for the blocks' partial sums, and a second launch. Compiled are 3 x 3 with
/// stride 1 or 2 and 5 x 5 with stride 1, for a multiple of 4 channels, a filter per channel; else
/// a thread per sum. Not supported: NCHW, several input channels per group.
/// **Try.** A window that slides along the row needs 4 vectors per output where this rung loads 34
/// for 7. How many registers do 9 vectors of the window take?
#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

namespace channel_rows = conv2d::channel_rows;
using channel_rows::add_product, channel_rows::kColumns, channel_rows::kMostQuads;

constexpr int kThreads = 256;                 ///< Of a block, at most.
constexpr int kSumsTogether = 10;             ///< Of a thread, that meet in shared memory at once.
constexpr int kAdders = 8;                    ///< Threads that add up one sum of all splits.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// How segments are dealt out.
struct Plan {
  int quads, rows;        ///< Of threads in a block: vectors of channels, and rows of them.
  int channel_tiles;      ///< Of `quads` vectors.
  int splits;             ///< Blocks that share a channel tile's segments.
  int of_row;             ///< Segments of a row of dy.
  std::int64_t segments;  ///< Of all rows of all images.

  explicit Plan(const Conv2dProblem& conv) {
    constexpr int kEnoughBlocks = 256, kSegmentsEach = 2;  // of a thread, at least
    const int all = conv.C / 4;
    channel_tiles = ceil_div(all, kMostQuads);
    quads = ceil_div(all, channel_tiles);
    rows = kThreads / quads;
    of_row = ceil_div(conv.Q, kColumns);
    segments = std::int64_t{conv.N} * conv.P * of_row;
    const std::int64_t worth = ceil_div<std::int64_t>(segments, std::int64_t{rows} * kSegmentsEach);
    splits = static_cast<int>(
        std::clamp<std::int64_t>(worth, 1, ceil_div(kEnoughBlocks, channel_tiles)));
  }
};

/// Adds a segment's products: 7 pixels of row (n, p) of dy, from column q on, and what they read.
template <int kTaps, int kStride, class T>
__device__ void add_segment(const Conv2dProblem& conv, const T* x, const T* dy, std::int64_t n,
                            int p, int q, int c, float4 (&sums)[kTaps * kTaps + 1]) {
  constexpr int kInColumns = (kColumns - 1) * kStride + kTaps;
  float4 slopes[kColumns];
  channel_rows::load(dy, n * conv.P + p, q, conv.Q, conv.C, c, slopes);
  float4& db = sums[kTaps * kTaps];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    db.x += slopes[i].x;
    db.y += slopes[i].y;
    db.z += slopes[i].z;
    db.w += slopes[i].w;
  }
  const int h0 = p * kStride - conv.pad.top, w0 = q * kStride - conv.pad.left;
#pragma unroll
  for (int r = 0; r < kTaps; ++r) {
    if (static_cast<unsigned>(h0 + r) >= static_cast<unsigned>(conv.H)) continue;
    float4 values[kInColumns];
    channel_rows::load(x, n * conv.H + h0 + r, w0, conv.W, conv.C, c, values);
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i)
        add_product(sums[r * kTaps + s], values[i * kStride + s], slopes[i]);
    }
  }
}

/// x [N][H][W][C], dy [N][P][Q][C], at multiples of a vector; parts [splits][kTaps * kTaps + 1][C].
/// Block (plan.quads, plan.rows), grid (channel tiles, splits).
template <class T, int kTaps, int kStride>
__global__ void __launch_bounds__(kThreads)
    conv2d_wgrad_depthwise_nhwc(Conv2dProblem conv, Plan plan, const T* x, const T* dy,
                                float* parts) {
  constexpr int kSums = kTaps * kTaps + 1;
  __shared__ float4 room[kSumsTogether * kThreads];  // [sum][row][quad]
  const int quad = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  const int thread = row * plan.quads + quad, threads = plan.rows * plan.quads;
  const int c0 = static_cast<int>(blockIdx.x) * plan.quads * 4, c = c0 + quad * 4;
  float4 sums[kSums] = {};
  if (c < conv.C) {
    const std::int64_t step = std::int64_t{plan.splits} * plan.rows;
    std::int64_t segment = std::int64_t{blockIdx.y} * plan.rows + row;
    for (; segment < plan.segments; segment += step) {
      const std::int64_t line = segment / plan.of_row;  // of all images
      const int q = static_cast<int>(segment % plan.of_row) * kColumns;
      add_segment<kTaps, kStride>(conv, x, dy, line / conv.P, static_cast<int>(line % conv.P), q, c,
                                  sums);
    }
  }
#pragma unroll
  for (int first = 0; first < kSums; first += kSumsTogether) {
    const int together = min(kSumsTogether, kSums - first);
#pragma unroll
    for (int i = 0; i < kSumsTogether; ++i) {
      if (first + i < kSums) room[i * threads + thread] = sums[first + i];
    }
    __syncthreads();  // between the writes of all rows and the reads below
    for (int i = thread; i < together * plan.quads; i += threads) {
      const int sum = i / plan.quads, of_quad = i % plan.quads;
      if (c0 + of_quad * 4 >= conv.C) continue;
      float4 all = {};
      for (int other = 0; other < plan.rows; ++other) {
        const float4& one = room[sum * threads + other * plan.quads + of_quad];
        all.x += one.x;
        all.y += one.y;
        all.z += one.z;
        all.w += one.w;
      }
      const std::int64_t line = std::int64_t{blockIdx.y} * kSums + first + sum;
      *reinterpret_cast<float4*>(parts + line * conv.C + c0 + of_quad * 4) = all;
    }
    __syncthreads();  // between these reads and the writes of the next sums
  }
}

/// dw [C][taps] and db [C]: the sums over all splits of parts [splits][taps + 1][C]. Block (32,
/// kAdders): a row of threads adds every kAdders-th split. Any one-dimensional grid.
__global__ void conv2d_wgrad_depthwise_nhwc_add_splits(int splits, int taps, int C,
                                                       const float* parts, float* dw, float* db) {
  __shared__ float room[kAdders][32];
  const std::int64_t sums = std::int64_t{taps + 1} * C;
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  for (std::int64_t first = std::int64_t{blockIdx.x} * 32; first < sums;
       first += std::int64_t{gridDim.x} * 32) {
    const std::int64_t i = first + lane;
    float sum = 0.0f;
    for (int split = row; split < splits && i < sums; split += kAdders)
      sum += parts[split * sums + i];
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
__global__ void conv2d_wgrad_depthwise_nhwc_any(Conv2dProblem conv, const T* x, const T* dy,
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

Declined supports(const Conv2dProblem& conv) { return channel_rows::not_depthwise(conv); }

template <class T>
using Kernel = void (*)(Conv2dProblem, Plan, const T*, const T*, float*);

/// The kernel for the filter's size; null for any other.
template <class T>
Kernel<T> choose(const Conv2dProblem& conv) {
  if (!channel_rows::has_quads(conv) || conv.stride.h != conv.stride.w) return nullptr;
  if (conv.R == 3 && conv.stride.h == 1) return conv2d_wgrad_depthwise_nhwc<T, 3, 1>;
  if (conv.R == 3 && conv.stride.h == 2) return conv2d_wgrad_depthwise_nhwc<T, 3, 2>;
  if (conv.R == 5 && conv.stride.h == 1) return conv2d_wgrad_depthwise_nhwc<T, 5, 1>;
  return nullptr;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  if (choose<float>(conv) == nullptr) return 0;
  return static_cast<std::size_t>(Plan(conv).splits) *
         (static_cast<std::size_t>(conv.R) * static_cast<std::size_t>(conv.S) + 1) *
         static_cast<std::size_t>(conv.C) * sizeof(float);
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const T *x = arrays.x, *dy = arrays.dy;
  float* dw = arrays.dw;
  float* db = arrays.db;
  const int taps = conv.R * conv.S;
  const Kernel<T> kernel = choose<T>(conv);
  const std::int64_t sums = (std::int64_t{taps} + 1) * conv.K;
  if (kernel != nullptr && channel_rows::are_aligned<T>(x, dy)) {
    const Plan plan(conv);
    auto* parts = context.workspace_as<float>();
    launch(kernel,
           {dim3(static_cast<unsigned>(plan.channel_tiles), static_cast<unsigned>(plan.splits)),
            dim3(static_cast<unsigned>(plan.quads), static_cast<unsigned>(plan.rows))},
           conv, plan, x, dy, parts);
    launch(conv2d_wgrad_depthwise_nhwc_add_splits,
           {dim3(blocks_for(sums, 32, kMaxBlocks)), dim3(32, kAdders)}, plan.splits, taps, conv.C,
           static_cast<const float*>(parts), dw, db);
  } else {
    launch(conv2d_wgrad_depthwise_nhwc_any<T>, {blocks_for(sums, kThreads, kMaxBlocks), kThreads},
           conv, x, dy, dw, db);
  }
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays, context); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (choose<float>(conv) == nullptr) return "any filter, one sum a thread";
  return text(conv.R, " x ", conv.S, ", stride ", conv.stride.h, ", in vectors, ",
              how_many(Plan(conv).splits, "block"), " a tile of channels");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> depthwise_nhwc = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
