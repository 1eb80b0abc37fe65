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
#include "cuda_optimized/conv2d/row_segment.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::flat_load;
using conv2d::flat_phase;
using conv2d::flat_room;
using conv2d::flat_store;
using conv2d::load_segment;
using conv2d::Pairs;
using conv2d::store_segment;

constexpr int kThreads = 128;                 ///< Of a block, at most.
[[maybe_unused]] constexpr int kBlocks = 8;  ///< That shall fit an SM, with a 3 x 3 filter.
constexpr int kSegment = 14;  ///< Columns of dx that a thread computes: a row of 14, 28, 56 ....
constexpr int kMaxSegments = 16;                 ///< Threads along a row; longer rows go round.
constexpr std::int64_t kBlockBytes = 13 * 1024;  ///< Of shared memory: 16 blocks of an SM.
constexpr std::int64_t kEnoughBlocks = 512;      ///< More planes a block only if so many remain.

/// What a block computes at once.
struct Plan {
  int planes;      ///< Planes of dx, one behind the other; more than one only if `rows` is H.
  int rows;        ///< Rows of each.
  int rounds;      ///< All dy planes of a dx plane at once, or K/C rounds that add one each.
  int in_floats;   ///< Room for the dy of a round, a multiple of 4.
  int out_floats;  ///< Room for dx.
  int segments;    ///< Threads along a row; the block is [planes][rows][segments] threads.

  int threads() const { return ceil_div(planes * rows * segments, 32) * 32; }
  std::int64_t bytes() const {
    return (std::int64_t{in_floats} + out_floats) * std::int64_t{sizeof(float)};
  }
};

/// Adds one dy plane's share to the elements of one thread, neighbours in a row: filter kTaps x
/// kTaps, stride 1, no dilation. Rows 0 ... rows - 1 of dy are there. p0, q0: the first row and
/// column of dy that the first element reads, by its last tap.
template <int kTaps, Pairs kPairs>
__device__ void add_segment(const float* in, int Q, int rows, int p0, int q0,
                            const float (&weight)[kTaps * kTaps], float (&sums)[kSegment]) {
#pragma unroll
  for (int r = 0; r < kTaps; ++r) {
    if (static_cast<unsigned>(p0 + r) >= static_cast<unsigned>(rows)) continue;
    float values[kSegment + kTaps - 1];
    load_segment<kPairs>(in + (p0 + r) * Q, Q, q0, values);
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int j = 0; j < kSegment; ++j) sums[j] += values[j + s] * weight[r * kTaps + s];
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
/// 1, or any if kTaps is 0. Grid (tiles of planes, <= bands of rows), block plan.threads().
template <int kTaps, Pairs kPairs>
__global__ void __launch_bounds__(kThreads, kTaps == 3 ? kBlocks : 1)
    depthwise_dgrad(Conv2dProblem conv, Plan plan, const float* dy, const float* weights,
                    float* dx) {
  float* in_room = dynamic_shared<float>();
  float* out_room = in_room + plan.in_floats;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int multiplier = conv.K / conv.C;
  const int plane0 = static_cast<int>(blockIdx.x) * plan.planes;
  const int tile_planes = min(plan.planes, conv.N * conv.C - plane0);
  const int k0 = plane0 % conv.C * multiplier;             // the first plane's first filter
  const int together = plan.rounds == 1 ? multiplier : 1;  // dy planes of a plane and a round
  // This thread's place, where the filter's size is known.
  [[maybe_unused]] const int segment = thread % plan.segments;
  [[maybe_unused]] const int row = thread / plan.segments % plan.rows;
  [[maybe_unused]] const int plane = thread / (plan.segments * plan.rows);

  for (std::int64_t band = std::int64_t{blockIdx.y} * plan.rows; band < conv.H;
       band += std::int64_t{gridDim.y} * plan.rows) {
    const int h0 = static_cast<int>(band), tile_rows = min(plan.rows, conv.H - h0);
    // The rows of dy that read the tile's rows. Several planes come as one piece, as a whole.
    int p_begin = 0, p_end = conv.P;
    if (plan.rounds > 1 || plan.rows < conv.H) {
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
      // While they are under way, the weights of the thread's first filter, turned round.
      [[maybe_unused]] float weight[kTaps > 0 ? kTaps * kTaps : 1];
      [[maybe_unused]] const auto load_filter = [&](int m) {
        const int k = (k0 + plane * multiplier + round + m) % conv.K;
#pragma unroll
        for (int i = 0; i < kTaps * kTaps; ++i) {
          weight[i] = weights[k * (kTaps * kTaps) + kTaps * kTaps - 1 - i];
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
              add_segment<kTaps, kPairs>(in + (plane * together + m) * in_rows * conv.Q, conv.Q,
                                         in_rows, h0 + row + conv.pad.top - (kTaps - 1) - p_begin,
                                         w + conv.pad.left - (kTaps - 1), weight, sums);
            }
            store_segment<kPairs != Pairs::none>(out_row, conv.W, w, sums);
          }
        }
      } else {
        for (int i = thread; i < tile_planes * tile_rows * conv.W; i += threads) {
          const int w = i % conv.W, h = i / conv.W % tile_rows, o = i / (conv.W * tile_rows);
          float sum = round == 0 ? 0.0f : out[i];
          for (int m = 0; m < together; ++m) {
            const int k = (k0 + o * multiplier + round + m) % conv.K;
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
  Plan plan{static_cast<int>(planes),
            rows,
            whole ? 1 : static_cast<int>(multiplier),
            static_cast<int>(floats(whole ? planes * multiplier : 1, in_rows, conv.Q)),
            static_cast<int>(floats(planes, rows, conv.W)),
            std::min(ceil_div(conv.W, kSegment), kMaxSegments)};
  if (planes * rows * plan.segments > kThreads) return {};
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
  for (int rows = std::min(conv.H, kThreads); rows > 1; --rows) {
    if (const auto plan = plan_with(conv, 1, rows, false); fits(plan)) return plan;
  }
  return plan_with(conv, 1, 1, false);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
  if (std::int64_t{conv.N} * conv.K > INT32_MAX) return "2^31 and more planes";
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

using Kernel = void (*)(Conv2dProblem, Plan, const float*, const float*, float*);

template <int kTaps>
Kernel kernel_with(const Conv2dProblem& conv, bool pairs) {
  if (!pairs) return depthwise_dgrad<kTaps, Pairs::none>;
  if ((conv.pad.left + kTaps - 1) % 2 == 0) return depthwise_dgrad<kTaps, Pairs::even>;
  return depthwise_dgrad<kTaps, Pairs::odd>;
}

Kernel choose(const Conv2dProblem& conv, bool pairs) {
  if (conv.R == conv.S && conv.stride.h == 1 && conv.stride.w == 1 && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3) return kernel_with<3>(conv, pairs);
    if (conv.R == 5) return kernel_with<5>(conv, pairs);
  }
  return depthwise_dgrad<0, Pairs::none>;
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Plan plan = plan_of(conv).value();
  const float* dy = arrays.in<float>("dy");
  float* dx = arrays.out<float>("dx");
  // Whether all rows of dy and dx begin at multiples of 8 bytes.
  const bool pairs =
      conv.W % 2 == 0 && conv.Q % 2 == 0 &&
      (reinterpret_cast<std::uintptr_t>(dy) | reinterpret_cast<std::uintptr_t>(dx)) % 8 == 0;
  const dim3 grid(blocks_for(std::int64_t{conv.N} * conv.C, plan.planes),
                  blocks_for(conv.H, plan.rows, kMaxGridYZ));
  launch(choose(conv, pairs),
         {grid, static_cast<unsigned>(plan.threads()), static_cast<std::size_t>(plan.bytes())},
         conv, plan, dy, arrays.in<float>("weights"), dx);
}

}  // namespace

Implementation<Conv2dProblem> depthwise() {
  return {.supports = supports, .run = run, .tile = tile_of};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
