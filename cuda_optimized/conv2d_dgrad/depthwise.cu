/// @file depthwise.cu
/// @brief conv2d_dgrad with one input channel a group: whole planes or bands of rows, gathered.
///
/// - Before: gemm_col2im.cu (a product with K/G = 1 is no product: it only fills a workspace)
/// - Made of: cuda_optimized/conv2d/flat_copy.cuh
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** A channel's dx depends on that channel's dy alone, and with stride 1 it is dy
/// convolved with the filter turned round:
///
///     forward   y[p]  =  x[p - pad] * w0 + x[p - pad + 1] * w1 + x[p - pad + 2] * w2
///     backward  dx[h] = dy[h + pad - 2] * w2 + dy[h + pad - 1] * w1 + dy[h + pad] * w0
///
/// So this is cuda_optimized/conv2d/depthwise.cu with the roles of x and y exchanged: planes come
/// in and go out as contiguous memory, 16 bytes at a time, a thread walks down a column with the
/// window in registers. With a channel multiplier, the dy of all its filters add up.
///
/// **Expect.** Problem B12 (32x512x14x14, 3x3): as the forward pass, 25.6 MB moved once, some 7 us
/// on an H200. im2col and col2im would move nine times as much.
/// **Costs.** Strides, dilation and other filters than 3 x 3 and 5 x 5 run without the walk: they
/// divide for each tap. Declined: more than one input channel a group, and rows so long that one of
/// them does not fit into shared memory with the outputs that read it.
///
/// **Try.** With stride 2, each residue of (h + pad) % 2 has its own, smaller filter of stride 1.
/// Which taps does it have for 3 x 3? Write the walk for them.
#include <optional>

#include "core/cuda/launch.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/flat_copy.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::flat_load;
using conv2d::flat_phase;
using conv2d::flat_room;
using conv2d::flat_store;

constexpr int kThreads = 256;
constexpr int kStrip = 7;  ///< Elements of a column that a thread walks down: 7, 14, 28 ... rows.
constexpr std::int64_t kBlockBytes = 26 * 1024;  ///< Of shared memory: 8 blocks of an SM.
constexpr std::int64_t kEnoughBlocks = 512;      ///< More planes a block only if so many remain.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< With more tiles a block takes several.

/// What a block computes at once.
struct Plan {
  int planes;      ///< Planes of dx, one behind the other; more than one only if `rows` is H.
  int rows;        ///< Rows of each.
  int rounds;      ///< All dy planes of a dx plane at once, or K/C rounds that add one each.
  int in_floats;   ///< Room for the dy of a round, a multiple of 4.
  int out_floats;  ///< Room for dx.

  std::int64_t bytes() const {
    return (std::int64_t{in_floats} + out_floats) * std::int64_t{sizeof(float)};
  }
};

/// Adds one dy plane's share to the elements of one thread, one below the other: filter kTaps x
/// kTaps, stride 1, no dilation. Rows 0 ... rows - 1 of dy are there. p0, q0: the first row and
/// column of dy that the first element reads, by its last tap.
template <int kTaps>
__device__ void walk_down(const float* in, int Q, int rows, int p0, int q0, const float* weights,
                          float (&sums)[kStrip]) {
  float weight[kTaps * kTaps];  // turned round
#pragma unroll
  for (int i = 0; i < kTaps * kTaps; ++i) weight[i] = weights[kTaps * kTaps - 1 - i];
  bool inside[kTaps];  // columns
#pragma unroll
  for (int s = 0; s < kTaps; ++s) {
    inside[s] = static_cast<unsigned>(q0 + s) < static_cast<unsigned>(Q);
  }
  // Row i of the strip's dy stands in window[i % kTaps]. All indices are constants once the loops
  // are unrolled.
  float window[kTaps][kTaps];
#pragma unroll
  for (int j = 0; j < kStrip; ++j) {
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      if (j > 0 && i < kTaps - 1) continue;  // the element above has loaded this row
      const int p = p0 + j + i;
      const bool row_inside = static_cast<unsigned>(p) < static_cast<unsigned>(rows);
#pragma unroll
      for (int s = 0; s < kTaps; ++s) {
        window[(j + i) % kTaps][s] = row_inside && inside[s] ? in[p * Q + q0 + s] : 0.0f;
      }
    }
#pragma unroll
    for (int r = 0; r < kTaps; ++r) {
#pragma unroll
      for (int s = 0; s < kTaps; ++s) {
        sums[j] += window[(j + r) % kTaps][s] * weight[r * kTaps + s];
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
/// 1, or any if kTaps is 0. Grid any, block kThreads.
template <int kTaps>
__global__ void __launch_bounds__(kThreads)
    depthwise_dgrad(Conv2dProblem conv, Plan plan, const float* dy, const float* weights,
                    float* dx) {
  float* in_room = dynamic_shared<float>();
  float* out_room = in_room + plan.in_floats;
  const int thread = static_cast<int>(threadIdx.x), multiplier = conv.K / conv.C;
  const int taps = conv.R * conv.S;
  const std::int64_t planes = std::int64_t{conv.N} * conv.C;
  const int bands = ceil_div(conv.H, plan.rows);
  const std::int64_t tiles = ceil_div<std::int64_t>(planes, plan.planes) * bands;
  // dy planes of a dx plane that are there at once
  const int together = plan.rounds == 1 ? multiplier : 1;

  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t plane0 = tile / bands * plan.planes;
    const int tile_planes = static_cast<int>(min(std::int64_t{plan.planes}, planes - plane0));
    const int h0 = static_cast<int>(tile % bands) * plan.rows;
    const int tile_rows = min(plan.rows, conv.H - h0);
    const int c0 = static_cast<int>(plane0 % conv.C);
    // The rows of dy that read the tile's rows. Several planes come as one piece, as a whole.
    int p_begin = 0, p_end = conv.P;
    if (plan.rounds > 1 || plan.rows < conv.H) {
      const int first = h0 + conv.pad.top - (conv.R - 1) * conv.dilation.h;
      const int last = h0 + tile_rows - 1 + conv.pad.top;
      p_begin = min(ceil_div(max(first, 0), conv.stride.h), conv.P);
      p_end = max(min(last / conv.stride.h + 1, conv.P), p_begin);
    }
    const int in_rows = p_end - p_begin;
    float* to = dx + (plane0 * conv.H + h0) * conv.W;
    float* out = out_room + flat_phase(to);

    for (int round = 0; round < plan.rounds; ++round) {
      const float* from = dy + ((plane0 * multiplier + round) * conv.P + p_begin) * conv.Q;
      flat_load(in_room, from, tile_planes * together * in_rows * conv.Q, thread, kThreads);
      ptx::cp_async_commit_group();
      ptx::cp_async_wait_group<0>();
      __syncthreads();  // between the copies, of all threads, and the reads below
      const float* in = in_room + flat_phase(from);
      if constexpr (kTaps > 0) {
        const int strips = ceil_div(tile_rows, kStrip);
        for (int i = thread; i < tile_planes * strips * conv.W; i += kThreads) {
          const int w = i % conv.W, strip = i / conv.W % strips, plane = i / (conv.W * strips);
          const int c = (c0 + plane) % conv.C, row = strip * kStrip;
          float sums[kStrip] = {};
          for (int m = 0; m < together; ++m) {
            walk_down<kTaps>(in + (plane * together + m) * in_rows * conv.Q, conv.Q, in_rows,
                             h0 + row + conv.pad.top - (kTaps - 1) - p_begin,
                             w + conv.pad.left - (kTaps - 1),
                             weights + (std::int64_t{c} * multiplier + round + m) * taps, sums);
          }
          float* column = out + (plane * tile_rows + row) * conv.W + w;
#pragma unroll
          for (int j = 0; j < kStrip; ++j) {
            if (row + j < tile_rows) {
              column[j * conv.W] = round == 0 ? sums[j] : column[j * conv.W] + sums[j];
            }
          }
        }
      } else {
        for (int i = thread; i < tile_planes * tile_rows * conv.W; i += kThreads) {
          const int w = i % conv.W, row = i / conv.W % tile_rows, plane = i / (conv.W * tile_rows);
          const int c = (c0 + plane) % conv.C;
          float sum = round == 0 ? 0.0f : out[i];
          for (int m = 0; m < together; ++m) {
            sum += one_element(conv, in + (plane * together + m) * in_rows * conv.Q, p_begin, p_end,
                               h0 + row, w,
                               weights + (std::int64_t{c} * multiplier + round + m) * taps);
          }
          out[i] = sum;
        }
      }
      // Between these writes and the reads of the copy, by other threads; and between the reads of
      // this round's dy and the next round's.
      __syncthreads();
    }
    flat_store(out_room, to, tile_planes * tile_rows * conv.W, thread, kThreads);
    __syncthreads();  // between these reads and what the next tile writes there
  }
}

/// Room for whole planes, or for a band of rows of one plane in rounds; nothing if there is none.
std::optional<Plan> plan_with(const Conv2dProblem& conv, std::int64_t planes, int rows,
                              bool whole) {
  // A window of rows + ext - 1 positions holds an output at every stride.h-th.
  const std::int64_t in_rows =
      whole ? conv.P
            : std::min<std::int64_t>(
                  conv.P, (rows - 1 + window_extent(conv.R, conv.dilation.h)) / conv.stride.h + 1);
  const std::int64_t multiplier = conv.K / conv.C;
  const auto floats = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    // Both factors end at the size of shared memory before they are multiplied: no overflow.
    constexpr std::int64_t kTooLarge = kMaxSharedBytes;
    return flat_room(std::min(std::min(a * b, kTooLarge) * c, kTooLarge));
  };
  Plan plan{static_cast<int>(planes), rows, whole ? 1 : static_cast<int>(multiplier),
            static_cast<int>(floats(whole ? planes * multiplier : 1, in_rows, conv.Q)),
            static_cast<int>(floats(planes, rows, conv.W))};
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
    if (const auto plan = plan_with(conv, planes, conv.H, true); fits(plan)) return plan;
  }
  for (int rows = std::min(conv.H, 64 * kStrip); rows > 1; rows -= rows > kStrip ? kStrip : 1) {
    if (rows > kStrip && rows < conv.H) rows = rows / kStrip * kStrip;
    if (const auto plan = plan_with(conv, 1, rows, false); fits(plan)) return plan;
  }
  return plan_with(conv, 1, 1, false);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
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

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Plan plan = plan_of(conv).value();
  const std::int64_t tiles = ceil_div(std::int64_t{conv.N} * conv.C, std::int64_t{plan.planes}) *
                             ceil_div(conv.H, plan.rows);
  auto kernel = depthwise_dgrad<0>;
  if (conv.R == conv.S && conv.stride.h == 1 && conv.stride.w == 1 && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3) kernel = depthwise_dgrad<3>;
    if (conv.R == 5) kernel = depthwise_dgrad<5>;
  }
  launch(kernel,
         {blocks_for(tiles, 1, kMaxBlocks), kThreads, static_cast<std::size_t>(plan.bytes())}, conv,
         plan, arrays.in<float>("dy"), arrays.in<float>("weights"), arrays.out<float>("dx"));
}

}  // namespace

Implementation<Conv2dProblem> depthwise() {
  return {.supports = supports, .run = run, .tile = tile_of};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
