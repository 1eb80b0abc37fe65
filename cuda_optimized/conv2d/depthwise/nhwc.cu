/// @file nhwc.cu
/// @brief Depthwise NHWC: each thread computes four adjacent channels as one vector.
///
/// - Before: nchw.cu
/// - After: nhwc_tiled.cu
/// - The rows of vectors: shared/depthwise/nhwc_rows.cuh
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** In NHWC the channels of a pixel are contiguous. A warp computes 128 of them, 4 per
/// thread in a vector of 16 bytes: every load and store is 512 contiguous bytes (256 in half
/// precision), whatever the width of the image, and x need not pass through shared memory.
///
///     x  h     [ v v v v v v v v v ]  9 vectors of a row in registers
///     x  h+1   [ . . . . . . . . . ]  the next row takes their place
///     y  p     ( s s s s s s s )      7 sums, in two rows: a row of x serves both
///     y  p+1   ( s s s s s s s )
///
/// Rows of x that neighbouring threads read, too, are in the L1 cache: a block is a whole tile of
/// 14 x 14 outputs. The filters of neighbouring channels are 9 floats apart; the block transposes
/// them in shared memory, tap by tap, while the first row of x is in flight.
///
/// **Expect.** B12 (32x512x14x14, 3x3): 128 blocks, one per SM; 36 vectors of x and 18 of the
/// filter loaded for 14 outputs, 504 multiply-adds. The 68 requests per warp take an SM 2 us, some
/// 1100 instructions another 2 us, the bytes from and to the L2 cache 4.3 us. Predicted on an H200:
/// 6 us; in half precision, with half the bytes and as many instructions, 5 us.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect bytes_per_lane.x.load 16
/// @expect sectors_per_request.x.load 16
/// @expect sectors_per_request.y.store 16
/// @expect barriers_per_block 2
/// **Costs.** Rows narrower than 8 and fewer than 128 channels leave threads idle. 3 x 3 and 5 x 5,
/// stride 1 and 2, are compiled, for a filter per channel and channels in fours; all else uses one
/// thread per output. Not supported: NCHW, more than one input channel per group.
/// **Try.** Let a thread have eight channels. How many registers does it need?
#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_rows.cuh"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using channel_rows::kColumns, channel_rows::Plan, channel_rows::Tile;

constexpr int kThreads = 256;                 ///< Of the kernel for any filter.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// Rows of outputs that a thread computes: two share most rows of x where the stride is 1, and 5 x
/// 5 leaves no registers for them.
template <int kTaps, int kStride>
constexpr int kRows = kTaps == 3 && kStride == 1 ? 2 : 1;

/// x [N][H][W][C], weights [C][kTaps][kTaps], bias [C] or null, y [N][P][Q][C]; x and y at
/// multiples of a vector. Block (plan.quads, kPlaces), any one-dimensional grid.
template <class T, int kTaps, int kStride>
__global__ void __launch_bounds__(channel_rows::kThreads)
    conv2d_depthwise_nhwc(Conv2dProblem conv, Plan plan, const T* x, const T* weights,
                          const float* bias, T* y) {
  constexpr int kInColumns = (kColumns - 1) * kStride + kTaps;
  constexpr int kOutRows = kRows<kTaps, kStride>, kInRows = (kOutRows - 1) * kStride + kTaps;
  float* const filters = dynamic_shared<float>();  // [tap][plan.pitch()]
  for (int number = static_cast<int>(blockIdx.x); number < plan.tiles;
       number += static_cast<int>(gridDim.x)) {
    const Tile tile(plan, number, kOutRows);
    const bool works = tile.c < conv.C && tile.row < conv.P && tile.column < conv.Q;
    const int h0 = tile.row * kStride - conv.pad.top, w0 = tile.column * kStride - conv.pad.left;
    const auto row_is_there = [&](int i) {
      return static_cast<unsigned>(h0 + i) < static_cast<unsigned>(conv.H);
    };
    const auto load = [&](int i, float4(&values)[kInColumns]) {
      const std::int64_t line = std::int64_t{tile.n} * conv.H + h0 + i;
      channel_rows::load(x, line, w0, conv.W, conv.C, tile.c, values);
    };
    float4 values[kInColumns];
    if (works && row_is_there(0)) load(0, values);
    channel_rows::turn_filters<kTaps * kTaps>(weights, tile.c0, conv.C, plan, filters);
    __syncthreads();  // between the filters' writes, by all threads, and the reads below
    if (works) {
      const float4 start = channel_rows::four_of(bias, tile.c);
      float4 sums[kOutRows][kColumns];
#pragma unroll
      for (int j = 0; j < kOutRows; ++j) {
#pragma unroll
        for (int q = 0; q < kColumns; ++q) sums[j][q] = start;
      }
#pragma unroll
      for (int i = 0; i < kInRows; ++i) {
        if (!row_is_there(i)) continue;
        if (i > 0) load(i, values);
#pragma unroll
        for (int j = 0; j < kOutRows; ++j) {
          const int r = i - j * kStride;  // known to the compiler, as i and j are
          if (r < 0 || r >= kTaps) continue;
#pragma unroll
          for (int s = 0; s < kTaps; ++s) {
            const float4 weight = channel_rows::filter_of(filters, r * kTaps + s, plan);
#pragma unroll
            for (int q = 0; q < kColumns; ++q)
              channel_rows::add_product(sums[j][q], values[q * kStride + s], weight);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < kOutRows; ++j) {
        if (tile.row + j >= conv.P) continue;
        const std::int64_t line = std::int64_t{tile.n} * conv.P + tile.row + j;
        channel_rows::store(y, line, tile.column, conv.Q, conv.C, tile.c, conv.activation, sums[j]);
      }
    }
    __syncthreads();  // between the reads of the filters and those of the block's next tile
  }
}

/// Any filter, and K / C filters a channel: one thread an output. Any one-dimensional grid.
template <class T>
__global__ void conv2d_depthwise_nhwc_any(Conv2dProblem conv, const T* x, const T* weights,
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

Declined supports(const Conv2dProblem& conv) { return channel_rows::not_depthwise(conv); }

/// A kernel for the filter's size, and the rows that a thread of it computes; null for any other.
template <class T>
struct Choice {
  void (*kernel)(Conv2dProblem, Plan, const T*, const T*, const float*, T*) = nullptr;
  int rows = 1;
};

template <class T, int kTaps, int kStride>
Choice<T> kernel_with() {
  return {conv2d_depthwise_nhwc<T, kTaps, kStride>, kRows<kTaps, kStride>};
}

template <class T>
Choice<T> choose(const Conv2dProblem& conv) {
  if (!channel_rows::has_quads(conv) || conv.stride.h != conv.stride.w) return {};
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
  if (choice.kernel != nullptr && channel_rows::are_aligned<T>(x, y)) {
    const Plan plan(conv.N, conv.C, conv.P, conv.Q, choice.rows);
    launch(choice.kernel, plan.config(conv.R * conv.S), conv, plan, x, weights, bias, y);
  } else {
    const std::int64_t outputs = std::int64_t{conv.N} * conv.P * conv.Q * conv.K;
    launch(conv2d_depthwise_nhwc_any<T>, {blocks_for(outputs, kThreads, kMaxBlocks), kThreads},
           conv, x, weights, bias, y);
  }
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays); });
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (choose<float>(conv).kernel == nullptr) return "any filter, one output a thread";
  return text(conv.R, " x ", conv.S, ", stride ", conv.stride.h, ", in vectors",
              idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> depthwise_nhwc = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
