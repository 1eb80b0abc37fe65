/// @file nchw.cu
/// @brief Depthwise NCHW gather: a block copies whole planes, or bands of rows, and gathers dx from
/// them.
///
/// - Before: cuda_naive/conv2d_dgrad/gather.cu
/// - After: nhwc.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** A channel's dx depends on that channel's dy alone. With stride 1 it is dy
/// convolved with the reversed filter:
///
///     forward   y[p]  =  x[p - pad] * w0 + x[p - pad + 1] * w1 + x[p - pad + 2] * w2
///     backward  dx[h] = dy[h + pad - 2] * w2 + dy[h + pad - 1] * w1 + dy[h + pad] * w0
///
/// So this is cuda_optimized/conv2d/depthwise/nchw.cu with x and y exchanged: planes are copied as
/// contiguous memory, and a thread computes 14 columns of a row. With stride 2, each tap meets
/// every other position: dx has residue classes, each with a smaller filter of stride 1. A thread's
/// columns alternate between two classes, known at compile time:
///
///     position   0    1    2    3    4    5          even: taps 0 and 2 of two neighbouring dy
///     dy[0]     w0   w1   w2                         odd:  tap 1 of one
///     dy[1]               w0   w1   w2
///
/// **Expect.** B12 (32x512x14x14, 3x3): 25.7 MB moved once, 4.4 us from and to L2; im2col and
/// col2im would move nine times as much. As in the forward pass, address computation is the limit,
/// not the bytes: twice the time of a copy.
/// @expect on --n 1 --c 8 --h 14 --w 14 --k 8 --r 3 --s 3 --pad 1 --groups 8
/// @expect loads_per_output.dy 49 / 196 = 0.25, each plane once, in vectors
/// @expect bytes_per_lane.dy.async 16
/// @expect lanes_per_output.dx.store 49 / 196 = 0.25
/// **Costs.** Strides above 2, dilation and other filters than 3 x 3 and 5 x 5 divide for each tap
/// and element. Not supported: several input channels per group, more than 8 filters per channel,
/// rows too long for shared memory.
/// **Try.** Stride 3: how many residues are there, and which taps of a 5 x 5 filter does each have?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/flat_copy.cuh"
#include "cuda_optimized/conv2d/shared/depthwise/plane_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_segment.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::flat_load;
using conv2d::flat_phase;
using conv2d::flat_store;
using conv2d::kPlaneThreads;
using conv2d::kSegment;
using conv2d::load_segment;
using conv2d::Pairs;
using conv2d::PlanePlan;
using conv2d::store_segment;

[[maybe_unused]] constexpr int kBlocks = 8;  ///< Blocks that should fit an SM, with a 3 x 3 filter.

/// Filter rows that read one row of dx: with stride 2 every other one.
template <int kTaps, int kStride>
constexpr int kRowTaps = (kTaps + kStride - 1) / kStride;

/// Adds one dy plane's share to the elements of one thread, neighbours in a row of dx: filter kTaps
/// x kTaps, no dilation. Row t of `weight` is the filter row by which the outputs of row p - t read
/// the row of dx; rows 0 ... rows - 1 of dy are there. The first element has the position
/// position0, counted with padding, and with stride 2 its residue is kOdd.
///
/// Output q reads element j by tap s if q * kStride + s is the element's position. So with stride 2
/// and 3 taps the elements of one residue have the taps 0 and 2, those of the other tap 1 alone.
template <int kTaps, int kStride, int kOdd, Pairs kPairs>
__device__ void add_segment(const float* in, int Q, int rows, int p, int position0,
                            const float (&weight)[kRowTaps<kTaps, kStride>][kTaps],
                            float (&sums)[kSegment]) {
  // The outputs from the one that reads the first element by its last tap, to the one that reads
  // the last element by its first tap.
  constexpr int kBefore = (kTaps - 1 - kOdd) / kStride;
  constexpr int kOutputs = (kSegment - 1 + kOdd) / kStride + 1 + kBefore;
  const int q0 = (position0 - kOdd) / kStride - kBefore;
#pragma unroll
  for (int t = 0; t < kRowTaps<kTaps, kStride>; ++t) {
    if (static_cast<unsigned>(p - t) >= static_cast<unsigned>(rows)) continue;
    float values[kOutputs];
    load_segment<kPairs>(in + (p - t) * Q, Q, q0, values);
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int j = 0; j < kSegment; ++j) {
        const int from = j + kOdd - s + kBefore * kStride;  // kStride times the output's place
        if (from % kStride == 0) sums[j] += values[from / kStride] * weight[t][s];
      }
    }
  }
}

/// The output of [begin, end) that begins at this position, counted with padding; -1 if none does.
__device__ int output_at(int position, int stride, int begin, int end) {
  // The sign comes first: C's % gives 0 for -2 % 2, and -2 / 2 is no output.
  if (position < 0 || position % stride != 0) return -1;
  const int output = position / stride;
  return output >= begin && output < end ? output : -1;
}

/// One dy plane's share of dx[h][w], with any filter. `in` holds the rows p_begin ... p_end - 1.
__device__ float one_element(const Conv2dProblem& conv, const float* in, int p_begin, int p_end,
                             int h, int w, const float* weights) {
  float sum = 0.0f;
  for (int r = 0; r < conv.R; ++r) {
    const int p = output_at(h + conv.pad.top - r * conv.dilation.h, conv.stride.h, p_begin, p_end);
    if (p < 0) continue;
    for (int s = 0; s < conv.S; ++s) {
      const int q = output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, 0, conv.Q);
      if (q >= 0) sum += in[(p - p_begin) * conv.Q + q] * weights[r * conv.S + s];
    }
  }
  return sum;
}

/// dy [N][K][P][Q], weights [K][1][R][S], dx [N][C][H][W]. The filter is kTaps x kTaps with stride
/// kStride, and kOdd the residue of pad.left; any if kTaps is 0. Grid (tiles of planes, <= bands of
/// rows), block plan.threads().
template <int kTaps, int kStride, int kOdd, Pairs kPairs>
__global__ void __launch_bounds__(kPlaneThreads, kTaps == 3 ? kBlocks : 1)
    conv2d_dgrad_depthwise_nchw(Conv2dProblem conv, PlanePlan plan, const float* dy,
                                const float* weights, float* dx) {
  float* in_room = dynamic_shared<float>();
  float* out_room = in_room + plan.in_floats;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int multiplier = plan.multiplier, together = plan.together();
  const int plane0 = static_cast<int>(blockIdx.x) * plan.planes;
  const int tile_planes = min(plan.planes, conv.N * conv.C - plane0);
  // What this thread computes, where the filter's size is known.
  const auto [plane, row, segment, channel] = conv2d::plane_place(plan, plane0, thread);
  const int k0 = channel * multiplier;

  for (std::int64_t band = std::int64_t{blockIdx.y} * plan.rows; band < conv.H;
       band += std::int64_t{gridDim.y} * plan.rows) {
    const int h0 = static_cast<int>(band), tile_rows = min(plan.rows, conv.H - h0);
    // The rows of dy that read the tile's rows. A band may have all rows of dx, and yet no room for
    // those rows of dy that read padding alone.
    int p_begin = 0, p_end = conv.P;
    if (!plan.whole) {
      const int first = h0 + conv.pad.top - (conv.R - 1) * conv.dilation.h;
      const int last = h0 + tile_rows - 1 + conv.pad.top;
      p_begin = min(ceil_div(max(first, 0), conv.stride.h), conv.P);
      p_end = max(min(last / conv.stride.h + 1, conv.P), p_begin);
    }
    const int in_rows = p_end - p_begin;
    float* to = dx + (std::int64_t{plane0} * conv.H + h0) * conv.W;
    float* out = out_room + flat_phase(to);

    for (int round = 0; round < plan.rounds; ++round) {
      const float* from =
          dy + ((std::int64_t{plane0} * multiplier + round) * conv.P + p_begin) * conv.Q;
      const float* in = in_room + flat_phase(from);
      flat_load(in_room, from, tile_planes * together * in_rows * conv.Q, thread, threads);
      ptx::cp_async_commit_group();
      // While they are in flight, the weights of the thread's first filter: the rows that read its
      // row of dx.
      [[maybe_unused]] const int position = h0 + row + conv.pad.top;
      [[maybe_unused]] float weight[kTaps > 0 ? kRowTaps<kTaps, kStride> : 1]
                                   [kTaps > 0 ? kTaps : 1];
      [[maybe_unused]] const auto load_filter = [&](int m) {
        const float* filter = weights + (k0 + round + m) * (kTaps * kTaps);
#pragma unroll
        for (int t = 0; t < kRowTaps<kTaps, kStride>; ++t) {
          const int r = kStride * t + position % kStride;
#pragma unroll
          for (int s = 0; s < kTaps; ++s) weight[t][s] = r < kTaps ? filter[r * kTaps + s] : 0.0f;
        }
      };
      if constexpr (kTaps > 0) {
        if (plane < tile_planes) load_filter(0);
      }
      ptx::cp_async_wait_group<0>();
      __syncthreads();  // between the copies, of all threads, and the reads below
      if constexpr (kTaps > 0) {
        if (plane < tile_planes && row < tile_rows) {
          float* out_row = out + (plane * tile_rows + row) * conv.W;
          for (int w = segment * kSegment; w < conv.W; w += plan.segments * kSegment) {
            float sums[kSegment] = {};
            if (round > 0) load_segment<Pairs::none>(out_row, conv.W, w, sums);
            for (int m = 0; m < together; ++m) {
              if (together > 1) load_filter(m);
              add_segment<kTaps, kStride, kOdd, kStride == 1 ? kPairs : Pairs::none>(
                  in + (plane * together + m) * in_rows * conv.Q, conv.Q, in_rows,
                  position / kStride - p_begin, w + conv.pad.left, weight, sums);
            }
            store_segment<kPairs != Pairs::none>(out_row, conv.W, w, sums);
          }
        }
      } else {
        for (int i = thread; i < tile_planes * tile_rows * conv.W; i += threads) {
          const int w = i % conv.W, h = i / conv.W % tile_rows, o = i / (conv.W * tile_rows);
          float sum = round == 0 ? 0.0f : out[i];
          for (int m = 0; m < together; ++m) {
            const int k = (plane0 + o) % conv.C * multiplier + round + m;
            sum += one_element(conv, in + (o * together + m) * in_rows * conv.Q, p_begin, p_end,
                               h0 + h, w, weights + std::int64_t{k} * conv.R * conv.S);
          }
          out[i] = sum;
        }
      }
      // Between these writes and the reads of the copy, by other threads; and between the reads of
      // this round's dy and the next round's.
      __syncthreads();
    }
    flat_store(out_room, to, tile_planes * tile_rows * conv.W, thread, threads);
    __syncthreads();  // between these reads and what the next band writes there
  }
}

std::optional<PlanePlan> plan_of(const Conv2dProblem& conv) {
  // A window of rows + ext - 1 positions holds an output at every stride.h-th.
  return conv2d::plan_planes(
      conv, {conv.P, conv.Q, conv.K / conv.C}, {conv.H, conv.W, 1}, kSegment,
      [&](std::int64_t rows) {
        return (rows - 1 + window_extent(conv.R, conv.dilation.h)) / conv.stride.h + 1;
      });
}

Declined supports(const Conv2dProblem& conv) {
  if (const auto declined = conv2d::not_depthwise(conv)) return declined;
  if (!plan_of(conv)) {
    return text("one row of dx, ", conv.W, " floats, and the rows of ", conv.Q,
                " floats that read it take more than ", kMaxSharedBytes, " bytes of shared memory");
  }
  return {};
}

OutputTile tile_of(const Conv2dProblem& conv) {
  const auto plan = plan_of(conv);
  return plan ? OutputTile{plan->rows, conv.W} : OutputTile{};
}

/// A kernel, and for which filter it is.
struct Choice {
  void (*kernel)(Conv2dProblem, PlanePlan, const float*, const float*, float*);
  int taps;  ///< 0: any filter.
  Pairs pairs;
};

template <int kTaps>
Choice with_stride_1(const Conv2dProblem& conv, bool pairs) {
  if (!pairs) return {conv2d_dgrad_depthwise_nchw<kTaps, 1, 0, Pairs::none>, kTaps, Pairs::none};
  if ((conv.pad.left + kTaps - 1) % 2 == 0) {
    return {conv2d_dgrad_depthwise_nchw<kTaps, 1, 0, Pairs::even>, kTaps, Pairs::even};
  }
  return {conv2d_dgrad_depthwise_nchw<kTaps, 1, 0, Pairs::odd>, kTaps, Pairs::odd};
}

/// Here pairs are stored, but not loaded: a thread's outputs begin at a multiple of 7 columns.
template <int kTaps>
Choice with_stride_2(const Conv2dProblem& conv, bool pairs) {
  if (conv.pad.left % 2 == 0) {
    if (!pairs) return {conv2d_dgrad_depthwise_nchw<kTaps, 2, 0, Pairs::none>, kTaps, Pairs::none};
    return {conv2d_dgrad_depthwise_nchw<kTaps, 2, 0, Pairs::even>, kTaps, Pairs::even};
  }
  if (!pairs) return {conv2d_dgrad_depthwise_nchw<kTaps, 2, 1, Pairs::none>, kTaps, Pairs::none};
  return {conv2d_dgrad_depthwise_nchw<kTaps, 2, 1, Pairs::even>, kTaps, Pairs::even};
}

Choice choose(const Conv2dProblem& conv, bool pairs) {
  if (conv.R == conv.S && conv.stride.h == conv.stride.w && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3 && conv.stride.h == 1) return with_stride_1<3>(conv, pairs);
    if (conv.R == 3 && conv.stride.h == 2) return with_stride_2<3>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 1) return with_stride_1<5>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 2) return with_stride_2<5>(conv, pairs);
  }
  return {conv2d_dgrad_depthwise_nchw<0, 1, 0, Pairs::none>, 0, Pairs::none};
}

/// Whether all rows of dy and dx begin at multiples of 8 bytes, if the first ones do.
bool rows_in_pairs(const Conv2dProblem& conv) { return conv.W % 2 == 0 && conv.Q % 2 == 0; }

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const PlanePlan plan = plan_of(conv).value();
  const float* dy = arrays.dy;
  float* dx = arrays.dx;
  const bool pairs =
      rows_in_pairs(conv) &&
      (reinterpret_cast<std::uintptr_t>(dy) | reinterpret_cast<std::uintptr_t>(dx)) % 8 == 0;
  const dim3 grid(blocks_for(std::int64_t{conv.N} * conv.C, plan.planes),
                  blocks_for(conv.H, plan.rows, kMaxGridYZ));
  launch(choose(conv, pairs).kernel,
         {grid, static_cast<unsigned>(plan.threads()), static_cast<std::size_t>(plan.bytes())},
         conv, plan, dy, arrays.weights, dx);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Choice choice = choose(conv, rows_in_pairs(conv));
  const std::string kernel =
      choice.taps == 0
          ? "any filter"
          : text(choice.taps, " x ", choice.taps, ", stride ", conv.stride.h,
                 conv.stride.h == 2 && conv.pad.left % 2 == 1 ? ", odd padding, " : ", ",
                 in_words(choice.pairs));
  return text(kernel, ", ", in_words(plan_of(conv).value()));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> depthwise_nchw = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
