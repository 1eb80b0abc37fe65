/// @file nchw.cu
/// @brief Depthwise register accumulators: one block computes one filter's gradient and accumulates
/// it in registers.
///
/// - Before: cuda_naive/conv2d_wgrad/gather.cu
/// - After: nhwc.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** A filter's gradient is R * S sums over all outputs of its channel, few enough for
/// the registers of every thread. A block computes one filter. Its x and dy stream through shared
/// memory, plane by plane, and each thread accumulates its share of the pixels. At the end the
/// shares are added in a fixed order: lanes by shuffles, then warps, then splits.
///
///     images  0..15   16..31      both under way from the start (cp.async)
///     time      |=======|=======|-- lanes -- warps --> dw[k][9], db[k]
///                each thread: 9 + 1 sums
///
/// The sum of dy itself is db: one more addition per dy. With few channels there are few filters,
/// so each filter's images are split over several blocks, and a second kernel adds their partial
/// sums.
///
/// **Expect.** B12 (32x512x14x14, 3x3): 25.7 MB, read once; 512 blocks, 4 per SM, one wave. One
/// million warp instructions multiply and add. Computing the addresses of rows, of 14 pixels each,
/// takes several times as many: more time than the 4.4 us of a copy.
/// @expect on --n 1 --c 8 --h 14 --w 14 --k 8 --r 3 --s 3 --pad 1 --groups 8
/// @expect loads_per_output.x 8 * 49 / 80 = 4.9, each plane once, in vectors
/// @expect loads_per_output.dy 8 * 49 / 80 = 4.9, for dw and db
/// @expect bytes_per_lane.x.async 16
/// **Costs.** Workspace for the partial sums of the splits. Other filters than 3 x 3 and 5 x 5,
/// dilation and strides above 2 use one thread per tap: two shared loads per multiply-add. Not
/// supported: more than one input channel per group, more than 8 filters per channel, and rows so
/// long that one row of dy and what it reads of x do not fit into shared memory.
/// **Try.** Add the splits with atomicAdd instead. How much time does it save, and what does
/// `./ladder test` report about the bits?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/flat_copy.cuh"
#include "cuda_optimized/conv2d/shared/depthwise/plane_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_segment.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/depthwise_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/depthwise_reduction.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

using conv2d::flat_phase;
using conv2d::load_segment;
using conv2d::Pairs;

constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more filters a block takes several.
[[maybe_unused]] constexpr int kBlocks = 4;   ///< Should fit an SM, with a 3 x 3 filter; else 2.

/// Adds the products of a piece of a row of dy with what it reads of x: filter kTaps x kTaps,
/// stride kStride, no dilation. Rows 0 ... rows - 1 of x are there.
template <int kTaps, int kStride, Pairs kPairs>
__device__ void add_segment(const float* x, int W, int rows, int h0, int w0, const float* dy_row,
                            int Q, int q0, float (&sums)[kTaps * kTaps + 1]) {
  constexpr int kOutputs = kSegment / kStride;
  float slopes[kOutputs];
  load_segment<kPairs != Pairs::none && kOutputs % 2 == 0 ? Pairs::even : Pairs::none>(dy_row, Q,
                                                                                       q0, slopes);
#pragma unroll
  for (int j = 0; j < kOutputs; ++j) sums[kTaps * kTaps] += slopes[j];
#pragma unroll
  for (int r = 0; r < kTaps; ++r) {
    if (static_cast<unsigned>(h0 + r) >= static_cast<unsigned>(rows)) continue;
    float values[(kOutputs - 1) * kStride + kTaps];
    load_segment<kPairs>(x + (h0 + r) * W, W, w0, values);
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        sums[r * kTaps + s] += values[j * kStride + s] * slopes[j];
      }
    }
  }
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][1][R][S], db [K], parts [splits][K][columns]. The filter
/// is kTaps x kTaps with stride kStride, or any if they are 0. Grid (<= K * tiles of columns,
/// splits), block plan.threads(), or kDepthwiseThreads for any filter.
template <int kTaps, int kStride, Pairs kPairs>
__global__ void __launch_bounds__(kDepthwiseThreads, kTaps == 3 ? kBlocks : 2)
    conv2d_wgrad_depthwise_nchw(Conv2dProblem conv, DepthwisePlan plan, const float* x,
                                const float* dy, float* dw, float* db, float* parts) {
  float* ring = dynamic_shared<float>();  // [kDepthwiseStages] parts
  const int thread = static_cast<int>(threadIdx.x);
  const int split = static_cast<int>(blockIdx.y);
  const int begin = split * plan.parts_each, end = min(plan.parts, begin + plan.parts_each);
  const int column_tiles = kTaps > 0 ? 1 : ceil_div(plan.columns, kDepthwiseThreads);
  // This thread's place, where the filter's size is known.
  [[maybe_unused]] const int line = plan.by_segments.quotient(thread);
  [[maybe_unused]] const int segment = plan.by_segments.remainder(thread, line);
  [[maybe_unused]] const int image = plan.by_rows.quotient(line);
  [[maybe_unused]] const int row = plan.by_rows.remainder(line, image);

  for (std::int64_t tile = blockIdx.x; tile < std::int64_t{conv.K} * column_tiles;
       tile += gridDim.x) {
    const int k = static_cast<int>(tile / column_tiles), c = plan.by_multiplier.quotient(k);
#pragma unroll
    for (int stage = 0; stage < kDepthwiseStages; ++stage) {
      if (begin + stage < end) {
        load_part(conv, plan, part_at(conv, plan, begin + stage), c, k, x, dy,
                  ring + stage * plan.part_floats());
      }
      ptx::cp_async_commit_group();  // also if empty: the waits below count groups
    }
    // The filter's size is known: each thread has all sums, of its pixels. Otherwise it has one
    // sum, of a share of the pixels, and `shares` threads have the same one.
    float sums[kTaps * kTaps + 1] = {};
    [[maybe_unused]] const int column0 = static_cast<int>(tile % column_tiles) * kDepthwiseThreads;
    [[maybe_unused]] const int tile_columns = min(kDepthwiseThreads, plan.columns - column0);
    [[maybe_unused]] const int shares = kDepthwiseThreads / tile_columns,
                               share = thread / tile_columns;
    [[maybe_unused]] const int column = column0 + thread % tile_columns;
    int stage = 0;
    for (int index = begin; index < end; ++index) {
      ptx::cp_async_wait_group<kDepthwiseStages -
                               1>();  // the oldest of kDepthwiseStages groups has landed
      __syncthreads();  // ... and the other threads' copies, too, before any thread reads them
      float* here = ring + stage * plan.part_floats();
      const ImagePart part = part_at(conv, plan, index);
      if constexpr (kTaps > 0) {
        constexpr int kOutputs = kSegment / kStride;
        if (image < part.images && row < part.rows) {
          const float* room = here + image * (plan.x_floats + plan.dy_floats);
          const float* in = room;
          const float* out = room + plan.x_floats;
          if (plan.x_vectors == 0) {
            in += flat_phase(x_of(conv, part, image, c, x));
            out += flat_phase(dy_of(conv, part, image, k, dy));
          }
          for (int q = segment * kOutputs; q < conv.Q; q += plan.segments * kOutputs) {
            add_segment<kTaps, kStride, kPairs>(
                in, conv.W, part.x_rows, (part.p + row) * kStride - conv.pad.top - part.h,
                q * kStride - conv.pad.left, out + row * conv.Q, conv.Q, q, sums);
          }
        }
      } else if (share < shares) {
        const int r = column / conv.S, s = column % conv.S;  // of no meaning for the bias
        for (int i_image = 0; i_image < part.images; ++i_image) {
          const float* room = here + i_image * (plan.x_floats + plan.dy_floats);
          const float* in = room + flat_phase(x_of(conv, part, i_image, c, x));
          const float* out = room + plan.x_floats + flat_phase(dy_of(conv, part, i_image, k, dy));
          for (int i = share; i < part.rows * conv.Q; i += shares) {
            const int p = i / conv.Q, q = i % conv.Q;
            const int h =
                (part.p + p) * conv.stride.h - conv.pad.top + r * conv.dilation.h - part.h;
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (column == plan.columns - 1) {
              sums[0] += out[i];
            } else if (static_cast<unsigned>(h) < static_cast<unsigned>(part.x_rows) &&
                       static_cast<unsigned>(w) < static_cast<unsigned>(conv.W)) {
              sums[0] += out[i] * in[h * conv.W + w];
            }
          }
        }
      }
      __syncthreads();  // between these reads and the copies of a later part to the same place
      if (index + kDepthwiseStages < end) {
        load_part(conv, plan, part_at(conv, plan, index + kDepthwiseStages), c, k, x, dy, here);
      }
      ptx::cp_async_commit_group();
      stage = stage + 1 < kDepthwiseStages ? stage + 1 : 0;
    }
    if constexpr (kTaps > 0) {
      __shared__ float of_warp[kDepthwiseThreads / 32][kTaps * kTaps + 1];
      const int lane = thread % 32;
      int first = 0, count = kTaps * kTaps + 1;
      const float sum_of_lanes = add_lanes<16>(sums, lane, first, count);
      if (count > 0) of_warp[thread / 32][first] = sum_of_lanes;
      __syncthreads();  // between the warps' accumulators and the reads below
      if (thread < plan.columns) {
        const int warps = static_cast<int>(blockDim.x) / 32;
        float sum = of_warp[0][thread];
        for (int warp = 1; warp < warps; ++warp) sum += of_warp[warp][thread];
        write_sum(plan, conv.K, split, k, thread, sum, dw, db, parts);
      }
      __syncthreads();  // between these reads and the next filter's sums
    } else {
      __shared__ float of_thread[kDepthwiseThreads];
      of_thread[thread] = sums[0];
      __syncthreads();  // between the threads' accumulators and the reads below
      if (share == 0) {
        float sum = sums[0];
        for (int i = 1; i < shares; ++i) sum += of_thread[thread + i * tile_columns];
        write_sum(plan, conv.K, split, k, column, sum, dw, db, parts);
      }
      __syncthreads();  // between these reads and the next tile's sums
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const auto declined = conv2d::not_depthwise(conv)) return declined;
  if (std::int64_t{conv.N} * conv.P > INT32_MAX) return "2^31 and more rows of dy";
  if (!plan_of(conv)) {
    return text(kDepthwiseStages, " times one row of dy, ", conv.Q, " floats, and the rows of ",
                conv.W, " floats that it reads take more than ", kMaxSharedBytes - kDeclaredBytes,
                " bytes of shared memory");
  }
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const DepthwisePlan plan = plan_of(conv).value();
  if (plan.splits == 1) return 0;
  return static_cast<std::size_t>(plan.splits) * static_cast<std::size_t>(conv.K) *
         static_cast<std::size_t>(plan.columns) * sizeof(float);
}

using Kernel = void (*)(Conv2dProblem, DepthwisePlan, const float*, const float*, float*, float*,
                        float*);

/// A kernel, and for which filter it is.
struct Choice {
  Kernel kernel;
  int taps;  ///< 0: any filter, and each thread has one tap.
  Pairs pairs;
};

template <int kTaps, int kStride>
Choice kernel_with(const Conv2dProblem& conv, bool pairs) {
  if (!pairs) return {conv2d_wgrad_depthwise_nchw<kTaps, kStride, Pairs::none>, kTaps, Pairs::none};
  if (conv.pad.left % 2 == 0) {
    return {conv2d_wgrad_depthwise_nchw<kTaps, kStride, Pairs::even>, kTaps, Pairs::even};
  }
  return {conv2d_wgrad_depthwise_nchw<kTaps, kStride, Pairs::odd>, kTaps, Pairs::odd};
}

Choice choose(const Conv2dProblem& conv, bool pairs) {
  if (conv.R == conv.S && conv.stride.h == conv.stride.w && conv.dilation.h == 1 &&
      conv.dilation.w == 1) {
    if (conv.R == 3 && conv.stride.h == 1) return kernel_with<3, 1>(conv, pairs);
    if (conv.R == 3 && conv.stride.h == 2) return kernel_with<3, 2>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 1) return kernel_with<5, 1>(conv, pairs);
    if (conv.R == 5 && conv.stride.h == 2) return kernel_with<5, 2>(conv, pairs);
  }
  return {conv2d_wgrad_depthwise_nchw<0, 0, Pairs::none>, 0, Pairs::none};
}

int threads_of(const Choice& choice, const DepthwisePlan& plan) {
  return choice.taps > 0 ? plan.threads() : kDepthwiseThreads;
}

/// Whether all rows of x and dy begin at multiples of 8 bytes, if the first ones do.
bool rows_in_pairs(const Conv2dProblem& conv) { return conv.W % 2 == 0 && conv.Q % 2 == 0; }

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  DepthwisePlan plan = plan_of(conv).value();
  const float* x = arrays.x;
  const float* dy = arrays.dy;
  const auto bits = reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(dy);
  const Choice choice = choose(conv, rows_in_pairs(conv) && bits % 8 == 0);
  const int threads = threads_of(choice, plan);
  if (planes_of_vectors(conv, plan, threads) && bits % 16 == 0) {
    plan.x_vectors = conv.H * conv.W / 4;
    plan.dy_vectors = conv.P * conv.Q / 4;
    plan.by_x_vectors = FastDivision(plan.x_vectors);
    plan.by_dy_vectors = FastDivision(plan.dy_vectors);
  }
  const int column_tiles = choice.taps > 0 ? 1 : ceil_div(plan.columns, kDepthwiseThreads);
  float* dw = arrays.dw;
  float* db = arrays.db;
  float* parts = context.workspace_as<float>();
  const dim3 grid(blocks_for(std::int64_t{conv.K} * column_tiles, 1, kMaxBlocks),
                  static_cast<unsigned>(plan.splits));
  launch(choice.kernel,
         {grid, static_cast<unsigned>(threads), static_cast<std::size_t>(plan.bytes())}, conv, plan,
         x, dy, dw, db, parts);
  if (plan.splits > 1) {
    const std::int64_t sums = std::int64_t{conv.K} * plan.columns;
    launch(conv2d_wgrad_add_splits,
           {blocks_for(sums, kDepthwiseThreads, kMaxBlocks), kDepthwiseThreads}, plan,
           std::int64_t{conv.K}, static_cast<const float*>(parts), dw, db);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const DepthwisePlan plan = plan_of(conv).value();
  const Choice choice = choose(conv, rows_in_pairs(conv));
  const std::string kernel =
      choice.taps == 0
          ? text("any filter", plan.columns > kDepthwiseThreads ? ", more taps than threads" : "")
          : text(choice.taps, " x ", choice.taps, ", stride ", conv.stride.h, ", ",
                 in_words(choice.pairs));
  return text(kernel,
              plan.images > 1       ? ", several images"
              : plan.rows == conv.P ? ", an image"
                                    : ", bands of an image",
              planes_of_vectors(conv, plan, threads_of(choice, plan)) ? " in fours" : "", ", ",
              how_many(plan.parts_each, "part"), " a block",
              plan.splits > 1 ? ", several blocks a filter" : "");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> depthwise_nchw = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
