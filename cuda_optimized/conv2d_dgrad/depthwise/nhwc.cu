/// @file nhwc.cu
/// @brief Depthwise NHWC: the kernel of the forward pass, with the filter reversed.
///
/// - Before: nchw.cu
/// - After: nhwc_tiled.cu
/// - The rows of vectors: cuda_optimized/conv2d/shared/depthwise/nhwc_rows.cuh
/// - The forward pass: cuda_optimized/conv2d/depthwise/nhwc.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With one filter per channel and stride 1, dx is dy convolved with the reversed
/// filter, with the complementary padding:
///
///     forward   y[p]  =  x[p - pad] w0 + x[p - pad + 1] w1 + x[p - pad + 2] w2
///     backward  dx[h] = dy[h + pad - 2] w2 + dy[h + pad - 1] w1 + dy[h + pad] w0
///
/// So it is the forward kernel: a thread has 4 adjacent channels of 7 adjacent pixels in two rows
/// of dx, and a warp loads and stores 512 contiguous bytes. A filter's rows and columns are counted
/// from the other end.
///
/// **Expect.** B12 (32x512x14x14, 3x3): the time of the forward pass, as bytes and arithmetic are
/// the same. Predicted on an H200: 6 us; in half precision 5 us.
/// @expect on --n 1 --c 128 --h 14 --w 14 --k 128 --r 3 --s 3 --pad 1 --groups 128 --layout nhwc
/// @expect bytes_per_lane.dy.load 16
/// @expect sectors_per_request.dy.load 16
/// @expect sectors_per_request.dx.store 16
/// @expect barriers_per_block 2
/// **Costs.** 3 x 3 and 5 x 5 with stride 1 are compiled, for a filter per channel and channels in
/// fours; all else uses one thread per element, which divides for each tap. Not supported: NCHW,
/// more than one input channel per group.
/// **Try.** Stride 2: each element of dx meets every other tap. Which rows of dy do two adjacent
/// rows of dx read, and which of the accumulators below are not needed?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/nhwc_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

namespace channel_rows = conv2d::channel_rows;
using channel_rows::kColumns, channel_rows::Plan, channel_rows::Tile;

constexpr int kThreads = 256;                 ///< Of the kernel for any filter.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.

/// Rows of dx that a thread computes: two share most rows of dy, and 5 x 5 leaves no registers.
template <int kTaps>
constexpr int kRows = kTaps == 3 ? 2 : 1;

/// dy [N][P][Q][C], weights [C][kTaps][kTaps], dx [N][H][W][C]; dy and dx at multiples of a vector.
/// Stride 1. Block (plan.quads, kPlaces), any one-dimensional grid.
template <class T, int kTaps>
__global__ void __launch_bounds__(channel_rows::kThreads)
    conv2d_dgrad_depthwise_nhwc(Conv2dProblem conv, Plan plan, const T* dy, const T* weights,
                                T* dx) {
  constexpr int kInColumns = kColumns + kTaps - 1, kInRows = kRows<kTaps> + kTaps - 1;
  float* const filters = dynamic_shared<float>();  // [tap][plan.pitch()]
  for (int number = static_cast<int>(blockIdx.x); number < plan.tiles;
       number += static_cast<int>(gridDim.x)) {
    const Tile tile(plan, number, kRows<kTaps>);
    const bool works = tile.c < conv.C && tile.row < conv.H && tile.column < conv.W;
    const int p0 = tile.row + conv.pad.top - (kTaps - 1);
    const int q0 = tile.column + conv.pad.left - (kTaps - 1);
    const auto row_is_there = [&](int i) {
      return static_cast<unsigned>(p0 + i) < static_cast<unsigned>(conv.P);
    };
    const auto load = [&](int i, float4(&values)[kInColumns]) {
      const std::int64_t line = std::int64_t{tile.n} * conv.P + p0 + i;
      channel_rows::load(dy, line, q0, conv.Q, conv.C, tile.c, values);
    };
    float4 values[kInColumns];
    if (works && row_is_there(0)) load(0, values);
    channel_rows::turn_filters<kTaps * kTaps>(weights, tile.c0, conv.C, plan, filters);
    __syncthreads();  // between the filters' writes, by all threads, and the reads below
    if (works) {
      float4 sums[kRows<kTaps>][kColumns] = {};
#pragma unroll
      for (int i = 0; i < kInRows; ++i) {
        if (!row_is_there(i)) continue;
        if (i > 0) load(i, values);
#pragma unroll
        for (int j = 0; j < kRows<kTaps>; ++j) {
          const int r = kTaps - 1 - (i - j);  // known to the compiler, as i and j are
          if (r < 0 || r >= kTaps) continue;
#pragma unroll
          for (int s = 0; s < kTaps; ++s) {
            const float4 weight = channel_rows::filter_of(filters, r * kTaps + s, plan);
#pragma unroll
            for (int w = 0; w < kColumns; ++w)
              channel_rows::add_product(sums[j][w], values[w + kTaps - 1 - s], weight);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < kRows<kTaps>; ++j) {
        if (tile.row + j >= conv.H) continue;
        const std::int64_t line = std::int64_t{tile.n} * conv.H + tile.row + j;
        channel_rows::store(dx, line, tile.column, conv.W, conv.C, tile.c, Activation::none,
                            sums[j]);
      }
    }
    __syncthreads();  // between the reads of the filters and those of the block's next tile
  }
}

/// Any filter, and K / C filters a channel: one thread an element. Any one-dimensional grid.
template <class T>
__global__ void conv2d_dgrad_depthwise_nhwc_any(Conv2dProblem conv, const T* dy, const T* weights,
                                                T* dx) {
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

Declined supports(const Conv2dProblem& conv) { return channel_rows::not_depthwise(conv); }

/// A kernel for the filter's size, and the rows that a thread of it computes; null for any other.
template <class T>
struct Choice {
  void (*kernel)(Conv2dProblem, Plan, const T*, const T*, T*) = nullptr;
  int rows = 1;
};

template <class T>
Choice<T> choose(const Conv2dProblem& conv) {
  if (!channel_rows::has_quads(conv) || conv.stride.h != 1 || conv.stride.w != 1) return {};
  if (conv.R == 3) return {conv2d_dgrad_depthwise_nhwc<T, 3>, kRows<3>};
  if (conv.R == 5) return {conv2d_dgrad_depthwise_nhwc<T, 5>, kRows<5>};
  return {};
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays) {
  const T *dy = arrays.dy, *weights = arrays.weights;
  T* dx = arrays.dx;
  const Choice<T> choice = choose<T>(conv);
  if (choice.kernel != nullptr && channel_rows::are_aligned<T>(dy, dx)) {
    const Plan plan(conv.N, conv.C, conv.H, conv.W, choice.rows);
    launch(choice.kernel, plan.config(conv.R * conv.S), conv, plan, dy, weights, dx);
  } else {
    const std::int64_t elements = std::int64_t{conv.N} * conv.H * conv.W * conv.C;
    launch(conv2d_dgrad_depthwise_nhwc_any<T>,
           {blocks_for(elements, kThreads, kMaxBlocks), kThreads}, conv, dy, weights, dx);
  }
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (choose<float>(conv).kernel == nullptr) return "any filter, one element a thread";
  return text(conv.R, " x ", conv.S, ", in vectors");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> depthwise_nhwc = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
