/// @file depthwise.cu
/// @brief conv2d_wgrad with one input channel a group: a block a filter, sums in registers.
///
/// - Before: im2col_gemm.cu (a product with one row: dw of a group has R * S elements)
/// - Made of: cuda_optimized/conv2d/flat_copy.cuh
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** A filter's gradient is R * S sums over all outputs of its channel, few enough for
/// the registers of every thread. A block takes one filter; its x and dy, plane by plane, stream
/// through shared memory, and each thread adds up its share of the pixels. The shares are added at
/// the end, in an order that does not change: lanes by halving, then warps, then splits.
///
///     images  0..7   8..15  16..23  24..31      all under way from the start (cp.async)
///     time      |======|======|======|======|-- lanes -- warps --> dw[k][9], db[k]
///                each thread: 9 + 1 sums
///
/// dy's own sum is db: one addition more for each dy. With few channels there are few filters, and
/// each filter's images are split over several blocks; a second kernel adds up their sums.
///
/// **Expect.** Problem B12 (32x512x14x14, 3x3): 25.7 MB read, once; 512 blocks, 4 an SM, so that
/// all of them are there at once. Some 8 us on an H200.
/// **Costs.** Workspace for the sums of the splits. Other filters than 3 x 3 and 5 x 5, dilation
/// and strides above 2 take one thread a tap: two shared loads a multiply-add. Declined: more than
/// one input channel a group, and rows so long that one row of dy and what it reads of x do not
/// fit into shared memory.
///
/// **Try.** Add the splits up with atomicAdd instead. How much time does it save, and what does
/// `./ladder test` say about the bits?
#include <optional>

#include "core/cuda/launch.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/flat_copy.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

using conv2d::flat_load;
using conv2d::flat_phase;
using conv2d::flat_room;

constexpr int kThreads = 224;  ///< 7 warps: 16 columns of 14, or 4 of 56.
constexpr int kWarps = kThreads / 32;
constexpr int kStages = 4;                       ///< Parts of the images under way.
constexpr int kStrip = 7;                        ///< Outputs of a column that a thread walks down.
constexpr std::int64_t kBlockBytes = 51 * 1024;  ///< Of shared memory: 4 blocks of an SM.
constexpr std::int64_t kEnoughBlocks = 264;      ///< Images are split until so many blocks run.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< With more filters a block takes several.

/// How the outputs of a filter are cut into parts.
struct Plan {
  int images;     ///< Of a part, as whole planes; more than one only if `rows` is P.
  int rows;       ///< Rows of dy in a part.
  int x_floats;   ///< Room for an image's x, a multiple of 4.
  int dy_floats;  ///< Room for its dy.
  int splits;     ///< Blocks that share a filter.
  int columns;    ///< Sums of a filter: R * S and the bias.

  HOST_DEVICE int part_floats() const { return images * (x_floats + dy_floats); }
  std::int64_t bytes() const {
    return std::int64_t{kStages} * part_floats() * std::int64_t{sizeof(float)};
  }
};

/// A part of the images: planes n ... n + images - 1, rows of dy and of x.
struct Part {
  int n, images, p, rows, h, x_rows;
};

__device__ Part part_at(const Conv2dProblem& conv, const Plan& plan, std::int64_t index) {
  if (plan.images > 1) {
    const int n = static_cast<int>(index) * plan.images;
    return {n, min(plan.images, conv.N - n), 0, conv.P, 0, conv.H};
  }
  const int bands = ceil_div(conv.P, plan.rows);
  const int p = static_cast<int>(index % bands) * plan.rows, rows = min(plan.rows, conv.P - p);
  const int first = p * conv.stride.h - conv.pad.top;
  const int last = first + (rows - 1) * conv.stride.h + (conv.R - 1) * conv.dilation.h;
  const int h = min(max(first, 0), conv.H);
  return {static_cast<int>(index / bands), 1, p, rows, h, min(max(last + 1, h), conv.H) - h};
}

/// Where an image's piece of the part begins.
__device__ const float* x_of(const Conv2dProblem& conv, const Part& part, int image, int k,
                             const float* x) {
  const int c = k / (conv.K / conv.C);
  return x + ((std::int64_t{part.n + image} * conv.C + c) * conv.H + part.h) * conv.W;
}
__device__ const float* dy_of(const Conv2dProblem& conv, const Part& part, int image, int k,
                              const float* dy) {
  return dy + ((std::int64_t{part.n + image} * conv.K + k) * conv.P + part.p) * conv.Q;
}

/// The warps begin to copy a part, image by image, to `to`: x, then dy of each.
__device__ void load_part(const Conv2dProblem& conv, const Plan& plan, const Part& part, int k,
                          const float* x, const float* dy, float* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = warp; i < 2 * part.images; i += kWarps) {
    float* image = to + i / 2 * (plan.x_floats + plan.dy_floats);
    if (i % 2 == 0) {
      flat_load(image, x_of(conv, part, i / 2, k, x), part.x_rows * conv.W, lane, 32);
    } else {
      flat_load(image + plan.x_floats, dy_of(conv, part, i / 2, k, dy), part.rows * conv.Q, lane,
                32);
    }
  }
}

/// Adds the products of a column of dy, of `outputs` elements, with what they read of x: filter
/// kTaps x kTaps, stride kStride, no dilation. Rows 0 ... rows - 1 of x are there.
template <int kTaps, int kStride>
__device__ void walk_down(const float* x, int W, int rows, int h0, int w0, const float* dy, int Q,
                          int outputs, float (&sums)[kTaps * kTaps + 1]) {
  bool inside[kTaps];  // columns
#pragma unroll
  for (int s = 0; s < kTaps; ++s) {
    inside[s] = static_cast<unsigned>(w0 + s) < static_cast<unsigned>(W);
  }
  // Row i of the strip's x stands in window[i % kTaps]. All indices are constants once the loops
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
        window[(j * kStride + i) % kTaps][s] = row_inside && inside[s] ? x[h * W + w0 + s] : 0.0f;
      }
    }
    const float value = j < outputs ? dy[j * Q] : 0.0f;
#pragma unroll
    for (int r = 0; r < kTaps; ++r) {
#pragma unroll
      for (int s = 0; s < kTaps; ++s) {
        sums[r * kTaps + s] += window[(j * kStride + r) % kTaps][s] * value;
      }
    }
    sums[kTaps * kTaps] += value;
  }
}

/// Writes a filter's sum where it belongs: to dw and db, or to the sums of a split.
__device__ void write_sum(const Plan& plan, std::int64_t filters, int split, std::int64_t k,
                          int column, float sum, float* dw, float* db, float* parts) {
  if (plan.splits > 1) {
    parts[(split * filters + k) * plan.columns + column] = sum;
  } else if (column < plan.columns - 1) {
    dw[k * (plan.columns - 1) + column] = sum;
  } else {
    db[k] = sum;
  }
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][1][R][S], db [K], parts [splits][K][columns]. The filter
/// is kTaps x kTaps with stride kStride, or any if they are 0. Grid (<= K * tiles of columns,
/// splits), block kThreads.
template <int kTaps, int kStride>
__global__ void __launch_bounds__(kThreads)
    depthwise_wgrad(Conv2dProblem conv, Plan plan, const float* x, const float* dy, float* dw,
                    float* db, float* parts) {
  float* ring = dynamic_shared<float>();  // [kStages] parts
  const int thread = static_cast<int>(threadIdx.x);
  const int split = static_cast<int>(blockIdx.y);
  // Bands of all images, or groups of whole images; a split takes a run of them.
  const std::int64_t all_parts = plan.images > 1
                                     ? ceil_div(conv.N, plan.images)
                                     : std::int64_t{conv.N} * ceil_div(conv.P, plan.rows);
  const std::int64_t begin = all_parts * split / plan.splits;
  const std::int64_t end = all_parts * (split + 1) / plan.splits;
  const int column_tiles = kTaps > 0 ? 1 : ceil_div(plan.columns, kThreads);

  for (std::int64_t tile = blockIdx.x; tile < std::int64_t{conv.K} * column_tiles;
       tile += gridDim.x) {
    const int k = static_cast<int>(tile / column_tiles);
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      if (begin + stage < end) {
        load_part(conv, plan, part_at(conv, plan, begin + stage), k, x, dy,
                  ring + stage * plan.part_floats());
      }
      ptx::cp_async_commit_group();  // also if empty: the waits below count groups
    }
    // The walk: each thread has all sums. Otherwise: each thread has one sum, of one part of the
    // pixels, and `shares` threads have the same one.
    [[maybe_unused]] float sums[kTaps * kTaps + 1] = {};
    [[maybe_unused]] const int column0 = static_cast<int>(tile % column_tiles) * kThreads;
    [[maybe_unused]] const int tile_columns = min(kThreads, plan.columns - column0);
    [[maybe_unused]] const int shares = kThreads / tile_columns, share = thread / tile_columns;
    [[maybe_unused]] const int column = column0 + thread % tile_columns;
    int stage = 0;
    for (std::int64_t index = begin; index < end; ++index) {
      ptx::cp_async_wait_group<kStages - 1>();  // the oldest of kStages groups has landed
      __syncthreads();  // ... that of the other threads too, before anybody reads it
      float* here = ring + stage * plan.part_floats();
      const Part part = part_at(conv, plan, index);
      if constexpr (kTaps > 0) {
        const int strips = ceil_div(part.rows, kStrip);
        for (int i = thread; i < part.images * strips * conv.Q; i += kThreads) {
          const int q = i % conv.Q, row = i / conv.Q % strips * kStrip;
          const int image = i / (conv.Q * strips);
          const float* room = here + image * (plan.x_floats + plan.dy_floats);
          walk_down<kTaps, kStride>(
              room + flat_phase(x_of(conv, part, image, k, x)), conv.W, part.x_rows,
              (part.p + row) * kStride - conv.pad.top - part.h, q * kStride - conv.pad.left,
              room + plan.x_floats + flat_phase(dy_of(conv, part, image, k, dy)) + row * conv.Q + q,
              conv.Q, part.rows - row, sums);
        }
      } else if (share < shares) {
        const int r = column / conv.S, s = column % conv.S;  // of no meaning for the bias
        for (int image = 0; image < part.images; ++image) {
          const float* room = here + image * (plan.x_floats + plan.dy_floats);
          const float* in = room + flat_phase(x_of(conv, part, image, k, x));
          const float* out = room + plan.x_floats + flat_phase(dy_of(conv, part, image, k, dy));
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
      if (index + kStages < end) {
        load_part(conv, plan, part_at(conv, plan, index + kStages), k, x, dy, here);
      }
      ptx::cp_async_commit_group();
      stage = stage + 1 < kStages ? stage + 1 : 0;
    }
    if constexpr (kTaps > 0) {
      __shared__ float of_warp[kWarps][kTaps * kTaps + 1];
#pragma unroll
      for (int i = 0; i < kTaps * kTaps + 1; ++i) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
          sums[i] += __shfl_down_sync(0xffffffffu, sums[i], static_cast<unsigned>(step));
        }
        if (thread % 32 == 0) of_warp[thread / 32][i] = sums[i];
      }
      __syncthreads();  // between the warps' sums and the reads below
      if (thread < plan.columns) {
        float sum = of_warp[0][thread];
        for (int warp = 1; warp < kWarps; ++warp) sum += of_warp[warp][thread];
        write_sum(plan, conv.K, split, k, thread, sum, dw, db, parts);
      }
      __syncthreads();  // between these reads and the next filter's sums
    } else {
      __shared__ float of_thread[kThreads];
      of_thread[thread] = sums[0];
      __syncthreads();  // between the threads' sums and the reads below
      if (share == 0) {
        float sum = sums[0];
        for (int i = 1; i < shares; ++i) sum += of_thread[thread + i * tile_columns];
        write_sum(plan, conv.K, split, k, column, sum, dw, db, parts);
      }
      __syncthreads();  // between these reads and the next tile's sums
    }
  }
}

/// Adds the splits, in their order. parts [splits][K][columns]. Grid any, block kThreads.
__global__ void add_splits(Plan plan, std::int64_t filters, const float* parts, float* dw,
                           float* db) {
  const std::int64_t count = filters * plan.columns;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    float sum = parts[i];
    for (int split = 1; split < plan.splits; ++split) sum += parts[split * count + i];
    const int column = static_cast<int>(i % plan.columns);
    const std::int64_t k = i / plan.columns;
    if (column < plan.columns - 1) {
      dw[k * (plan.columns - 1) + column] = sum;
    } else {
      db[k] = sum;
    }
  }
}

/// Room for whole images, or for a band of rows of one.
std::optional<Plan> plan_with(const Conv2dProblem& conv, int images, int rows) {
  const std::int64_t x_rows =
      images > 1 ? conv.H
                 : std::min<std::int64_t>(conv.H, (rows - 1) * std::int64_t{conv.stride.h} +
                                                      window_extent(conv.R, conv.dilation.h));
  const auto floats = [](std::int64_t a, std::int64_t b) {
    // Both factors end at the size of shared memory before they are multiplied: no overflow.
    constexpr std::int64_t kTooLarge = kMaxSharedBytes;
    return static_cast<int>(
        flat_room(std::min(std::min(a, kTooLarge) * std::min(b, kTooLarge), kTooLarge)));
  };
  Plan plan{.images = images,
            .rows = rows,
            .x_floats = floats(x_rows, conv.W),
            .dy_floats = floats(rows, conv.Q),
            .splits = 1,
            .columns = conv.R * conv.S + 1};
  if (plan.bytes() > kBlockBytes) return {};
  const std::int64_t parts =
      images > 1 ? ceil_div(conv.N, images) : std::int64_t{conv.N} * ceil_div(conv.P, rows);
  plan.splits = static_cast<int>(
      std::clamp<std::int64_t>(kEnoughBlocks / conv.K, 1, std::max<std::int64_t>(1, parts)));
  return plan;
}

/// As many whole images as fit, or else as many rows as fit, at least one.
std::optional<Plan> plan_of(const Conv2dProblem& conv) {
  // As few parts as fit kStages, as images of equal number.
  for (int images = std::min(64, std::max(1, ceil_div(conv.N, kStages))); images > 0; --images) {
    if (const auto plan = plan_with(conv, images, conv.P)) return plan;
  }
  for (int rows = std::min(conv.P, 64 * kStrip); rows > 1; rows -= rows > kStrip ? kStrip : 1) {
    if (rows > kStrip && rows < conv.P) rows = rows / kStrip * kStrip;
    if (const auto plan = plan_with(conv, 1, rows)) return plan;
  }
  return plan_with(conv, 1, 1);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
  if (!plan_of(conv)) {
    return text(kStages, " times one row of dy, ", conv.Q, " floats, and the rows of ", conv.W,
                " floats that it reads take more than ", kBlockBytes, " bytes of shared memory");
  }
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Plan plan = plan_of(conv).value();
  if (plan.splits == 1) return 0;
  return static_cast<std::size_t>(plan.splits) * static_cast<std::size_t>(conv.K) *
         static_cast<std::size_t>(plan.columns) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Plan plan = plan_of(conv).value();
  auto kernel = depthwise_wgrad<0, 0>;
  int column_tiles = ceil_div(plan.columns, kThreads);
  if (conv.R == conv.S && conv.stride.h == conv.stride.w && conv.dilation.h == 1 &&
      conv.dilation.w == 1 && (conv.R == 3 || conv.R == 5) && conv.stride.h <= 2) {
    column_tiles = 1;
    if (conv.R == 3 && conv.stride.h == 1) kernel = depthwise_wgrad<3, 1>;
    if (conv.R == 3 && conv.stride.h == 2) kernel = depthwise_wgrad<3, 2>;
    if (conv.R == 5 && conv.stride.h == 1) kernel = depthwise_wgrad<5, 1>;
    if (conv.R == 5 && conv.stride.h == 2) kernel = depthwise_wgrad<5, 2>;
  }
  float* dw = arrays.out<float>("dw");
  float* db = arrays.out<float>("db");
  float* parts = arrays.workspace<float>();
  const dim3 grid(blocks_for(std::int64_t{conv.K} * column_tiles, 1, kMaxBlocks),
                  static_cast<unsigned>(plan.splits));
  launch(kernel, {grid, kThreads, static_cast<std::size_t>(plan.bytes())}, conv, plan,
         arrays.in<float>("x"), arrays.in<float>("dy"), dw, db, parts);
  if (plan.splits > 1) {
    const std::int64_t sums = std::int64_t{conv.K} * plan.columns;
    launch(add_splits, {blocks_for(sums, kThreads, kMaxBlocks), kThreads}, plan,
           std::int64_t{conv.K}, static_cast<const float*>(parts), dw, db);
  }
}

}  // namespace

Implementation<Conv2dProblem> depthwise() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
