/// @file depthwise.cu
/// @brief conv2d with one input channel a group: whole planes or bands of rows, each one piece of
/// memory.
///
/// - Before: direct_double_buffered.cu (overlaps channels; here there is nothing to overlap)
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With C = groups a filter reads one channel, and there is no sum over channels that
/// would reuse what was loaded. The rung is a copy that happens to multiply: what counts is that
/// every byte moves once, in vectors of 16. In NCHW a channel's image is one piece of memory, small
/// ones lie one behind the other, and so do the outputs. A block takes as many whole planes as fit
/// (or, of a large plane, a band of rows with its halo), and neither rows nor alignment count:
///
///     x  [ plane 0 | plane 1 | ... | plane 15 ]      14 x 14: 196 floats each, 49 vectors
///          | cp.async, 16 bytes each                 rows of 14 floats are not multiples of 16
///        [ the same in shared memory            ]    bytes, planes in a row are
///          | a thread walks down a column
///        [ outputs in shared memory             ]
///          | float4 stores
///     y  [ plane 0 | plane 1 | ... | plane 15 ]
///
/// The padding is not stored anywhere: a thread knows for its column which taps are inside. A
/// thread walks down kStrip outputs of a column; the window moves on in registers, and every output
/// loads one new row of it.
///
/// **Expect.** Problem B12 (32x512x14x14, 3x3): 12.8 MB read and 12.8 MB written, 3.9 shared loads
/// and 9 multiply-adds an output. Some 7 us on an H200, where a copy of as many bytes takes 5.
/// **Costs.** The outputs pass through shared memory a second time. Other filters than 3 x 3 and
/// 5 x 5, dilation and strides above 2 run without the walk: R * S loads an output. Declined: more
/// than one input channel a group, and rows so long that the inputs of a single row of outputs do
/// not fit into shared memory.
///
/// **Try.** Let the threads store straight to y, without the second pass. How many sectors does a
/// warp's store touch when rows have 14 floats, and how many vectors would it be?
#include "core/cuda/launch.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/direct_plan.cuh"
#include "cuda_optimized/conv2d/flat_copy.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kThreads = 256;
constexpr int kStrip = 7;  ///< Outputs of a column that a thread walks down: 7, 14, 28 ... rows.
constexpr std::int64_t kBlockBytes = 26 * 1024;  ///< Of shared memory: 8 blocks of an SM.
constexpr std::int64_t kEnoughBlocks = 512;      ///< More planes a block only if so many remain.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< With more tiles a block takes several.

/// What a block computes at once.
struct Plan {
  int planes;      ///< Planes of x, one behind the other; more than one only if `rows` is P.
  int rows;        ///< Rows of each output plane.
  int rounds;      ///< One after the other: all output planes at once, or K/C rounds of one each.
  int in_floats;   ///< Room for the inputs, a multiple of 4.
  int out_floats;  ///< Room for the outputs of a round.

  std::int64_t bytes() const {
    return (std::int64_t{in_floats} + out_floats) * std::int64_t{sizeof(float)};
  }
};

/// The outputs of one thread, one below the other: filter kTaps x kTaps, stride kStride, no
/// dilation. Rows 0 ... rows - 1 of the input are there, all others are padding.
template <int kTaps, int kStride>
__device__ void walk_down(const float* in, int W, int rows, int h0, int w0, const float* weights,
                          float start, float* out, int Q, int outputs) {
  float weight[kTaps * kTaps];
#pragma unroll
  for (int i = 0; i < kTaps * kTaps; ++i) weight[i] = weights[i];
  bool inside[kTaps];  // columns
#pragma unroll
  for (int s = 0; s < kTaps; ++s) {
    inside[s] = static_cast<unsigned>(w0 + s) < static_cast<unsigned>(W);
  }
  // Input row i of the strip stands in window[i % kTaps]. All indices are constants once the loops
  // are unrolled.
  float window[kTaps][kTaps];
#pragma unroll
  for (int j = 0; j < kStrip; ++j) {
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      if (j > 0 && i < kTaps - kStride) continue;  // the output above has loaded this row
      const int h = h0 + j * kStride + i;
      const bool row_inside = static_cast<unsigned>(h) < static_cast<unsigned>(rows);
#pragma unroll
      for (int s = 0; s < kTaps; ++s) {
        window[(j * kStride + i) % kTaps][s] = row_inside && inside[s] ? in[h * W + w0 + s] : 0.0f;
      }
    }
    float sum = start;
#pragma unroll
    for (int r = 0; r < kTaps; ++r) {
#pragma unroll
      for (int s = 0; s < kTaps; ++s) {
        sum += window[(j * kStride + r) % kTaps][s] * weight[r * kTaps + s];
      }
    }
    if (j < outputs) out[j * Q] = sum;
  }
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
/// kTaps with stride kStride, or any if they are 0. Grid any, block kThreads.
template <int kTaps, int kStride>
__global__ void __launch_bounds__(kThreads)
    depthwise(Conv2dProblem conv, Plan plan, const float* x, const float* weights,
              const float* bias, float* y) {
  float* in_room = dynamic_shared<float>();
  float* out_room = in_room + plan.in_floats;
  const int thread = static_cast<int>(threadIdx.x), multiplier = conv.K / conv.C;
  const std::int64_t planes = std::int64_t{conv.N} * conv.C;
  const int bands = ceil_div(conv.P, plan.rows);
  const std::int64_t tiles = ceil_div<std::int64_t>(planes, plan.planes) * bands;

  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t plane0 = tile / bands * plan.planes;
    const int tile_planes = static_cast<int>(min(std::int64_t{plan.planes}, planes - plane0));
    const int p0 = static_cast<int>(tile % bands) * plan.rows;
    const int tile_rows = min(plan.rows, conv.P - p0);
    // The rows of x that the tile's outputs read; several planes are there as a whole.
    int h_begin = 0, h_end = conv.H;
    if (plan.planes == 1) {
      const int first = p0 * conv.stride.h - conv.pad.top;
      const int last = first + (tile_rows - 1) * conv.stride.h + (conv.R - 1) * conv.dilation.h;
      h_begin = min(max(first, 0), conv.H);
      h_end = min(max(last + 1, h_begin), conv.H);
    }
    const int in_rows = h_end - h_begin;
    const float* from = x + (plane0 * conv.H + h_begin) * conv.W;
    flat_load(in_room, from, tile_planes * in_rows * conv.W, thread, kThreads);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // between the copies, of all threads, and the reads below

    for (int round = 0; round < plan.rounds; ++round) {
      // Output planes follow one another like those of x, `multiplier` for each.
      const std::int64_t out0 = plane0 * multiplier + round;
      const int out_planes = plan.rounds == 1 ? tile_planes * multiplier : 1;
      const int k0 = static_cast<int>(out0 % conv.K);
      float* to = y + (out0 * conv.P + p0) * conv.Q;
      const float* in = in_room + flat_phase(from);
      float* out = out_room + flat_phase(to);
      if constexpr (kTaps > 0) {
        const int strips = ceil_div(tile_rows, kStrip);
        for (int i = thread; i < out_planes * strips * conv.Q; i += kThreads) {
          const int q = i % conv.Q, strip = i / conv.Q % strips, plane = i / (conv.Q * strips);
          const int k = (k0 + plane) % conv.K, row = strip * kStrip;
          const int in_plane = plan.rounds == 1 ? plane / multiplier : 0;
          walk_down<kTaps, kStride>(
              in + in_plane * in_rows * conv.W, conv.W, in_rows,
              (p0 + row) * kStride - conv.pad.top - h_begin, q * kStride - conv.pad.left,
              weights + k * (kTaps * kTaps), bias ? bias[k] : 0.0f,
              out + (plane * tile_rows + row) * conv.Q + q, conv.Q, tile_rows - row);
        }
      } else {
        for (int i = thread; i < out_planes * tile_rows * conv.Q; i += kThreads) {
          const int q = i % conv.Q, row = i / conv.Q % tile_rows, plane = i / (conv.Q * tile_rows);
          const int k = (k0 + plane) % conv.K;
          const int in_plane = plan.rounds == 1 ? plane / multiplier : 0;
          out[i] = one_output(conv, in + in_plane * in_rows * conv.W, in_rows,
                              (p0 + row) * conv.stride.h - conv.pad.top - h_begin,
                              q * conv.stride.w - conv.pad.left,
                              weights + std::int64_t{k} * conv.R * conv.S, bias ? bias[k] : 0.0f);
        }
      }
      __syncthreads();  // between these writes and the reads of the copy, by other threads
      flat_store(out_room, to, out_planes * tile_rows * conv.Q, thread, kThreads);
      __syncthreads();  // between these reads, and those of x, and what is written there next
    }
  }
}

/// Room for whole planes, or for a band of rows of one plane in rounds; nothing if it is too large
/// for an int.
std::optional<Plan> plan_with(const Conv2dProblem& conv, std::int64_t planes, int rows,
                              int rounds) {
  const std::int64_t in_rows =
      planes > 1 ? conv.H
                 : std::min<std::int64_t>(conv.H, (rows - 1) * std::int64_t{conv.stride.h} +
                                                      window_extent(conv.R, conv.dilation.h));
  const std::int64_t outs = rounds == 1 ? planes * (conv.K / conv.C) : 1;
  // Both factors end at the size of shared memory before they are multiplied: no overflow.
  const auto floats = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    constexpr std::int64_t kTooLarge = kMaxSharedBytes;
    return flat_room(std::min(std::min(a * b, kTooLarge) * c, kTooLarge));
  };
  Plan plan{static_cast<int>(planes), rows, rounds,
            static_cast<int>(floats(planes, in_rows, conv.W)),
            static_cast<int>(floats(outs, rows, conv.Q))};
  if (plan.bytes() > std::int64_t{kMaxSharedBytes}) return {};
  return plan;
}

/// As many whole planes as fit and leave enough blocks, or else as many rows as fit, at least one.
std::optional<Plan> plan_of(const Conv2dProblem& conv) {
  const auto fits = [](const std::optional<Plan>& plan) {
    return plan && plan->bytes() <= kBlockBytes;
  };
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{conv.N} * conv.C / kEnoughBlocks);
  for (std::int64_t planes = std::min<std::int64_t>(most, 64); planes > 0; --planes) {
    if (const auto plan = plan_with(conv, planes, conv.P, 1); fits(plan)) return plan;
  }
  const int rounds = conv.K / conv.C;
  for (int rows = std::min(conv.P, 64 * kStrip); rows > 1; rows -= rows > kStrip ? kStrip : 1) {
    if (rows > kStrip && rows < conv.P) rows = rows / kStrip * kStrip;
    if (const auto plan = plan_with(conv, 1, rows, rounds); fits(plan)) return plan;
  }
  return plan_with(conv, 1, 1, rounds);
}

Declined supports(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
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

void run(const Conv2dProblem& problem, const Arguments& arrays) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Plan plan = plan_of(conv).value();
  const std::int64_t tiles = ceil_div(std::int64_t{conv.N} * conv.C, std::int64_t{plan.planes}) *
                             ceil_div(conv.P, plan.rows);
  auto kernel = depthwise<0, 0>;
  if (conv.R == conv.S && conv.stride.h == conv.stride.w && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3 && conv.stride.h == 1) kernel = depthwise<3, 1>;
    if (conv.R == 3 && conv.stride.h == 2) kernel = depthwise<3, 2>;
    if (conv.R == 5 && conv.stride.h == 1) kernel = depthwise<5, 1>;
    if (conv.R == 5 && conv.stride.h == 2) kernel = depthwise<5, 2>;
  }
  launch(kernel,
         {blocks_for(tiles, 1, kMaxBlocks), kThreads, static_cast<std::size_t>(plan.bytes())}, conv,
         plan, arrays.in<float>("x"), arrays.in<float>("weights"), arrays.in_or_null<float>("bias"),
         arrays.out<float>("y"));
}

}  // namespace

Implementation<Conv2dProblem> depthwise() {
  return {.supports = supports, .run = run, .tile = tile_of};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
