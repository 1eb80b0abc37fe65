/// @file nchw.cu
/// @brief Depthwise NCHW: a block copies whole planes, or bands of rows, as contiguous memory.
///
/// - Before: direct/deinterleaved.cu
/// - After: nhwc.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With C = groups a filter reads one channel, and no sum over channels reuses loaded
/// data. The kernel is in essence a copy: every byte should move once, in vectors of 16 bytes. In
/// NCHW a channel's plane is contiguous, planes are stored one after the other, and so are the
/// outputs. A block copies several whole planes (or, of a large plane, a band of rows with its
/// halo), whatever the alignment of rows:
///
///     x  [ plane 0 | plane 1 | ... | plane 7 ]      14 x 14: 196 floats each, 49 vectors
///          | cp.async, 16 bytes each                rows of 14 floats are not multiples of 16
///        [ the same in shared memory           ]    bytes, planes in a row are
///          | a thread takes 14 columns of a row
///        [ outputs in shared memory            ]
///          | float4 stores
///     y  [ plane 0 | plane 1 | ... | plane 7 ]
///
/// **Expect.** B12 (32x512x14x14, 3x3): 12.8 MB read and 12.8 MB written; 21 shared loads of pairs
/// and 126 multiply-adds for 14 outputs. With so little arithmetic the *instructions* are the
/// limit, not the bytes: so a thread computes a whole row, and divides by multiplications
/// (FastDivision).
/// @expect on --n 1 --c 8 --h 14 --w 14 --k 8 --r 3 --s 3 --pad 1 --groups 8
/// @expect loads_per_output.x 49 / 196 = 0.25, each plane once, in vectors
/// @expect bytes_per_lane.x.async 16
/// @expect lanes_per_output.y.store 49 / 196 = 0.25
/// @expect loads_per_output.shared (21 - 1 + 49 / 14) / 14 = 1.679, less padding; outputs
/// **Costs.** The outputs pass through shared memory, too. Only 3 x 3 and 5 x 5 with stride 1 or 2
/// are compiled; all others load R * S values per output. Not supported: more than one input
/// channel per group, more than 8 filters per channel, rows too long for shared memory.
/// **Try.** Let the threads store straight to y. How many sectors does a warp's store touch when
/// rows have 14 floats, and how many vectors would it be?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/flat_copy.cuh"
#include "cuda_optimized/conv2d/shared/depthwise/plane_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_segment.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

[[maybe_unused]] constexpr int kBlocks = 8;  ///< Of an SM, at least, with a 3 x 3 filter.

/// Outputs that a thread computes, neighbours in a row, from the columns w0 ... of x: filter kTaps
/// x kTaps, stride kStride, no dilation. Rows 0 ... rows - 1 of the input are there, all others are
/// padding.
template <int kTaps, int kStride, Pairs kPairs>
__device__ void one_segment(const float* in, int W, int rows, int h0, int w0,
                            const float (&weight)[kTaps * kTaps], float start,
                            Activation activation, float* out, int Q, int q0) {
  constexpr int kOutputs = kSegment / kStride;
  float sums[kOutputs];
#pragma unroll
  for (int j = 0; j < kOutputs; ++j) sums[j] = start;
#pragma unroll
  for (int r = 0; r < kTaps; ++r) {
    if (static_cast<unsigned>(h0 + r) >= static_cast<unsigned>(rows)) continue;
    float values[(kOutputs - 1) * kStride + kTaps];
    load_segment<kPairs>(in + (h0 + r) * W, W, w0, values);
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) sums[j] += values[j * kStride + s] * weight[r * kTaps + s];
    }
  }
#pragma unroll
  for (int j = 0; j < kOutputs; ++j) sums[j] = activated(activation, sums[j]);
  store_segment<kPairs != Pairs::none && kOutputs % 2 == 0>(out, Q, q0, sums);
}

/// One output, with any filter.
__device__ float one_output(const Conv2dProblem& conv, const float* in, int rows, int h0, int w0,
                            const float* weights, float start) {
  float sum = start;
  for (int r = 0; r < conv.R; ++r) {
    const int h = h0 + r * conv.dilation.h;
    if (static_cast<unsigned>(h) >= static_cast<unsigned>(rows)) continue;
    for (int s = 0; s < conv.S; ++s) {
      const int w = w0 + s * conv.dilation.w;
      if (static_cast<unsigned>(w) >= static_cast<unsigned>(conv.W)) continue;
      sum += in[h * conv.W + w] * weights[r * conv.S + s];
    }
  }
  return sum;
}

/// x [N][C][H][W], weights [K][1][R][S], bias [K] or null, y [N][K][P][Q]. The filter is kTaps x
/// kTaps with stride kStride, or any if they are 0. Grid (tiles of planes, <= bands of rows), block
/// plan.threads().
template <int kTaps, int kStride, Pairs kPairs>
__global__ void __launch_bounds__(kPlaneThreads, kTaps == 3 ? kBlocks : 1)
    conv2d_depthwise_nchw(Conv2dProblem conv, PlanePlan plan, const float* x, const float* weights,
                          const float* bias, float* y) {
  float* in_room = dynamic_shared<float>();
  float* out_room = in_room + plan.in_floats;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int multiplier = plan.multiplier, together = plan.together();
  const int plane0 = static_cast<int>(blockIdx.x) * plan.planes;
  const int tile_planes = min(plan.planes, conv.N * conv.C - plane0);
  // What this thread computes, where the filter's size is compiled in.
  const auto [plane, row, segment, channel] = plane_place(plan, plane0, thread);
  const int k0 = channel * multiplier;

  for (std::int64_t band = std::int64_t{blockIdx.y} * plan.rows; band < conv.P;
       band += std::int64_t{gridDim.y} * plan.rows) {
    const int p0 = static_cast<int>(band), tile_rows = min(plan.rows, conv.P - p0);
    // The rows of x that the tile's outputs read. A band may have all rows of y, and yet no room
    // for those rows of x that no output reads.
    int h_begin = 0, h_end = conv.H;
    if (!plan.whole) {
      const int first = p0 * conv.stride.h - conv.pad.top;
      const int last = first + (tile_rows - 1) * conv.stride.h + (conv.R - 1) * conv.dilation.h;
      h_begin = min(max(first, 0), conv.H);
      h_end = min(max(last + 1, h_begin), conv.H);
    }
    const int in_rows = h_end - h_begin;
    const float* from = x + (std::int64_t{plane0} * conv.H + h_begin) * conv.W;
    const float* in = in_room + flat_phase(from);
    flat_load(in_room, from, tile_planes * in_rows * conv.W, thread, threads);
    ptx::cp_async_commit_group();
    // While they are in flight, the weights of the thread's first filter.
    [[maybe_unused]] float weight[kTaps > 0 ? kTaps * kTaps : 1], start = 0.0f;
    [[maybe_unused]] const auto load_filter = [&](int k) {
#pragma unroll
      for (int i = 0; i < kTaps * kTaps; ++i) weight[i] = weights[k * (kTaps * kTaps) + i];
      if (bias) start = bias[k];
    };
    if constexpr (kTaps > 0) {
      if (plane < tile_planes) load_filter(k0);
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // between the copies, of all threads, and the reads below

    for (int round = 0; round < plan.rounds; ++round) {
      // Output planes follow one another like those of x, `multiplier` for each.
      const std::int64_t out0 = std::int64_t{plane0} * multiplier + round;
      float* to = y + (out0 * conv.P + p0) * conv.Q;
      float* out = out_room + flat_phase(to);
      if constexpr (kTaps > 0) {
        constexpr int kOutputs = kSegment / kStride;
        if (plane < tile_planes && row < tile_rows) {
          for (int m = 0; m < together; ++m) {
            if (round + m > 0) load_filter(k0 + round + m);
            for (int q = segment * kOutputs; q < conv.Q; q += plan.segments * kOutputs) {
              one_segment<kTaps, kStride, kPairs>(
                  in + plane * in_rows * conv.W, conv.W, in_rows,
                  (p0 + row) * kStride - conv.pad.top - h_begin, q * kStride - conv.pad.left,
                  weight, start, conv.activation,
                  out + ((plane * together + m) * tile_rows + row) * conv.Q, conv.Q, q);
            }
          }
        }
      } else {
        for (int i = thread; i < tile_planes * together * tile_rows * conv.Q; i += threads) {
          const int q = i % conv.Q, p = i / conv.Q % tile_rows, o = i / (conv.Q * tile_rows);
          const int k = (plane0 + o / together) % conv.C * multiplier + round + o % together;
          out[i] = activated(
              conv.activation,
              one_output(conv, in + o / together * in_rows * conv.W, in_rows,
                         (p0 + p) * conv.stride.h - conv.pad.top - h_begin,
                         q * conv.stride.w - conv.pad.left,
                         weights + std::int64_t{k} * conv.R * conv.S, bias ? bias[k] : 0.0f));
        }
      }
      __syncthreads();  // between these writes and the reads of the copy, by other threads
      flat_store(out_room, to, tile_planes * together * tile_rows * conv.Q, thread, threads);
      __syncthreads();  // between these reads, and those of x, and what is written there next
    }
  }
}

std::optional<PlanePlan> plan_of(const Conv2dProblem& conv) {
  return plan_planes(conv, {conv.H, conv.W, 1}, {conv.P, conv.Q, conv.K / conv.C},
                     kSegment / std::min(conv.stride.w, 2), [&](std::int64_t rows) {
                       return (rows - 1) * conv.stride.h + window_extent(conv.R, conv.dilation.h);
                     });
}

Declined supports(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (const auto declined = not_depthwise(conv)) return declined;
  if (!plan_of(conv)) {
    return text("the inputs of one row of outputs, ",
                std::min<std::int64_t>(conv.H, window_extent(conv.R, conv.dilation.h)), " rows of ",
                conv.W, " floats, and the outputs take more than ", kMaxSharedBytes,
                " bytes of shared memory");
  }
  return {};
}

OutputTile tile_of(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const auto plan = plan_of(conv);
  return plan ? OutputTile{plan->rows, conv.Q} : OutputTile{};
}

using Kernel = void (*)(Conv2dProblem, PlanePlan, const float*, const float*, const float*, float*);

/// A kernel, and for which filter it is.
struct Choice {
  Kernel kernel;
  int taps;  ///< 0: any filter.
  Pairs pairs;
};

template <int kTaps, int kStride>
Choice kernel_with(const Conv2dProblem& conv, bool pairs) {
  if (!pairs) return {conv2d_depthwise_nchw<kTaps, kStride, Pairs::none>, kTaps, Pairs::none};
  if (conv.pad.left % 2 == 0)
    return {conv2d_depthwise_nchw<kTaps, kStride, Pairs::even>, kTaps, Pairs::even};
  return {conv2d_depthwise_nchw<kTaps, kStride, Pairs::odd>, kTaps, Pairs::odd};
}

Choice choose(const Conv2dProblem& conv, bool pairs) {
  if (conv.R == conv.S && conv.stride.h == conv.stride.w && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3 && conv.stride.h == 1) return kernel_with<3, 1>(conv, pairs);
    if (conv.R == 3 && conv.stride.h == 2) return kernel_with<3, 2>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 1) return kernel_with<5, 1>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 2) return kernel_with<5, 2>(conv, pairs);
  }
  return {conv2d_depthwise_nchw<0, 0, Pairs::none>, 0, Pairs::none};
}

/// Whether all rows of x and y begin at multiples of 8 bytes, if the first ones do.
bool rows_in_pairs(const Conv2dProblem& conv) { return conv.W % 2 == 0 && conv.Q % 2 == 0; }

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const PlanePlan plan = plan_of(conv).value();
  const float* x = arrays.x;
  float* y = arrays.y;
  const bool pairs =
      rows_in_pairs(conv) &&
      (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(y)) % 8 == 0;
  const dim3 grid(blocks_for(std::int64_t{conv.N} * conv.C, plan.planes),
                  blocks_for(conv.P, plan.rows, kMaxGridYZ));
  launch(choose(conv, pairs).kernel,
         {grid, static_cast<unsigned>(plan.threads()), static_cast<std::size_t>(plan.bytes())},
         conv, plan, x, arrays.weights, arrays.bias, y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Choice choice = choose(conv, rows_in_pairs(conv));
  const std::string kernel = choice.taps == 0 ? "any filter"
                                              : text(choice.taps, " x ", choice.taps, ", stride ",
                                                     conv.stride.h, ", ", in_words(choice.pairs));
  return text(kernel, ", ", in_words(plan_of(conv).value()), idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> depthwise_nchw = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
