/// @file few_channels.cu
/// @brief Merged residue classes for few input channels: the classes are rows of one GEMM.
///
/// - Before: cp_async.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** The first layer of a network has 3 input channels (B3: 32x3x224x224, 64 filters
/// 7x7, stride 2). The GEMM of a class has 3 rows: of a tile of 32, 29 would be empty. But the four
/// classes read nearly the same dy. Pixel (i, j) of each of them, together a square of 2 x 2 pixels
/// of dx, has windows that begin at most one apart. So all four share one window that covers them
/// all. The rows are then class and channel, 4 * 3 = 12, and where a class lacks a tap of the
/// common window, its weight is zero:
///
///     7 taps, stride 2, pad 3        dy:  i-1  i  i+1 i+2
///       even h: taps 5, 3, 1              x    x   x   0
///       odd h:  taps 6, 4, 2, 0           x    x   x   x       49 of 64 weights are not zero
///
/// A thread computes 12 rows of 4 pixels. An element that is gathered from dy, once for all
/// classes, is used in 12 multiply-adds.
///
/// **Expect.** 9.9 instead of 7.6 GFLOP for B3, at about 35 TFLOP/s: 280 us on an H200.
/// @expect on --n 1 --c 3 --h 32 --w 32 --k 8 --r 7 --s 7 --stride 2 --pad 3
/// @expect loads_per_output.dy 8 * 60 * 60 / 3072 = 9.375, of 64 taps of an axis, 60 inside
/// @expect footprint.workspace 8 * 4 * 4 * 12 * 4 = 6144, weights of 12 rows, with zeros
/// @expect launches 2, all four classes at once
/// **Costs.** Products with zeros: 1.3 times as many products as needed for B3, and most of them
/// where the stride is larger than the filter. Not supported: more than 12 rows, and what
/// cp_async.cu does not support.
/// **Try.** Store two adjacent elements of a row, of the classes left and right, with one float2.
/// Which threads have them?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

/// 12 rows x 384 pixels, 8 products a step, 12 x 4 accumulators per thread, all threads of a warp
/// along the pixels, 4 stages, 4 blocks per SM.
using Tile = conv2d::PipelineTile<conv2d::PipelineShape{.block_m = 12,
                                                        .block_n = 384,
                                                        .block_k = 8,
                                                        .thread_m = 12,
                                                        .thread_n = 4,
                                                        .lanes_m = 1,
                                                        .stages = 4,
                                                        .blocks = 4}>;
constexpr int kThreads = 256;  ///< Of a block that packs weights.

/// Where the windows of all classes begin along one axis, from their common pixel, and their taps.
struct CommonWindow {
  int start, taps;

  CommonWindow(int extent, int filter, int pad, int stride, int dilation) {
    bool some = false;
    int first = 0, last = 0;
    for (int residue = 0; residue < std::min(stride, extent); ++residue) {
      const ClassAxis axis(residue, extent, filter, pad, stride, dilation);
      if (axis.taps == 0) continue;
      const int lowest = axis.start + (axis.taps - 1) * axis.move;  // taps go downwards
      first = some ? std::min(first, lowest) : lowest;
      last = some ? std::max(last, axis.start) : axis.start;
      some = true;
    }
    start = first;
    taps = last - first + 1;
  }
};

/// All classes as one product of dy: row (class, channel) of each group.
conv2d::WindowProduct common_product(const Conv2dProblem& conv) {
  const CommonWindow h(conv.H, conv.R, conv.pad.top, conv.stride.h, conv.dilation.h);
  const CommonWindow w(conv.W, conv.S, conv.pad.left, conv.stride.w, conv.dilation.w);
  return {.N = conv.N,
          .groups = conv.groups,
          .channels = conv.K / conv.groups,
          .H = conv.P,
          .W = conv.Q,
          .filters = conv.stride.h * conv.stride.w * (conv.C / conv.groups),
          .rows = ceil_div(conv.H, conv.stride.h),
          .columns = ceil_div(conv.W, conv.stride.w),
          .R = h.taps,
          .S = w.taps,
          .stride = {1, 1},
          .first = {h.start, w.start},
          .tap = {1, 1}};
}

/// The tap of the filter that a pixel of residue class `residue` meets `window` positions from its
/// own in dy; -1 if there is none.
__device__ int tap_at(int residue, int window, int filter, int pad, int stride, int dilation) {
  const int distance = residue + pad - window * stride;
  if (distance < 0 || distance % dilation != 0) return -1;
  const int tap = distance / dilation;
  return tap < filter ? tap : -1;
}

/// weights [K][C/groups][R][S] to packed [groups][k_rows][padded_m].
/// Grid <= ceil(groups * k_rows * padded_m / 256), block 256.
__global__ void __launch_bounds__(kThreads)
    conv2d_dgrad_implicit_gemm_few_channels_pack_common(Conv2dProblem conv,
                                                        conv2d::GatheredProduct product,
                                                        const float* weights, float* packed) {
  const int taps = product.R * product.S, group_c = conv.C / conv.groups;
  const std::int64_t count = std::int64_t{product.groups} * product.k_rows * product.padded_m;
  for (const std::int64_t i : grid_stride<kThreads>(count)) {
    const auto m = static_cast<int>(i % product.padded_m);
    const auto row = static_cast<int>(i / product.padded_m % product.k_rows);
    const std::int64_t group = i / product.padded_m / product.k_rows;
    const int k = product.table ? row / taps : row % product.padded_c;
    const int tap = product.table ? row % taps : row / product.padded_c;
    float weight = 0.0f;
    if (m < product.filters && k < product.channels) {
      const int residue = m / group_c, c = m % group_c;
      const int r = tap_at(residue / conv.stride.w, product.first.h + tap / product.S, conv.R,
                           conv.pad.top, conv.stride.h, conv.dilation.h);
      const int s = tap_at(residue % conv.stride.w, product.first.w + tap % product.S, conv.S,
                           conv.pad.left, conv.stride.w, conv.dilation.w);
      if (r >= 0 && s >= 0) {
        const std::int64_t filter = group * product.channels + k;
        weight = weights[((filter * group_c + c) * conv.R + r) * conv.S + s];
      }
    }
    packed[i] = weight;
  }
}

/// Writes row (class, channel) of pixel (i, j) to dx[channel, i * stride + residue, ...].
struct StoreSquares {
  float* dx;
  Conv2dProblem conv;

  template <class T>
  __device__ void store(const conv2d::GatheredProduct& product, const conv2d::BlockPlace& place,
                        const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                        float* shared) const {
    const int group_c = conv.C / conv.groups;
    for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      const int pixel = place.n + n;
      m += place.m;
      if (m >= product.filters || pixel >= product.pixels()) return;
      const int image = product.by_image.quotient(pixel);
      const int in_image = product.by_image.remainder(pixel, image);
      const int i = product.by_row.quotient(in_image), j = product.by_row.remainder(in_image, i);
      const int residue = m / group_c;
      const int h = i * conv.stride.h + residue / conv.stride.w;
      const int w = j * conv.stride.w + residue % conv.stride.w;
      if (h >= conv.H || w >= conv.W) return;  // the last square may be cut off
      dx[Index4{conv.C, conv.H, conv.W}(image, place.group * group_c + m % group_c, h, w)] = sum;
    });
  }
};

/// dy [N][K][P][Q], packed [groups][k_rows][padded_m].
/// Grid n_tiles * groups, block Tile::kThreads.
/// @tparam Gather GatherTapByTap or GatherByTable
template <template <class> class Gather>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    conv2d_dgrad_implicit_gemm_few_channels(conv2d::GatheredProduct product, StoreSquares store,
                                            const float* dy, const float* packed) {
  float* const a_tiles = dynamic_shared<float>();                   // [stage][k][m]
  float* const b_tiles = a_tiles + Tile::kStages * Tile::kFloatsA;  // [stage][k][n]
  auto* const table = reinterpret_cast<conv2d::TapOffset*>(a_tiles + Tile::kFloats);

  const int thread = static_cast<int>(threadIdx.x);
  const auto n_tiles = static_cast<unsigned>(product.n_tiles);
  // All rows are one tile.
  const conv2d::BlockPlace place{0, static_cast<int>(blockIdx.x % n_tiles) * Tile::kBlockN,
                                 static_cast<int>(blockIdx.x / n_tiles), 0};
  if constexpr (Gather<Tile>::kTable) {
    Gather<Tile>::fill(product, table);
    __syncthreads();  // separates these stores from all loads of the table
  }
  Gather<Tile> gather(product, place, dy, 0, table);
  constexpr int kFoursM = Tile::kBlockM / 4, kFoursA = Tile::kFloatsA / 4;  // of a row, of a tile
  static_assert(Tile::kThreads % kFoursM == 0);
  const float* weights =
      packed + (std::int64_t{place.group} * product.k_rows + thread / kFoursM) * product.padded_m +
      place.m + thread % kFoursM * 4;  // of the tile that is copied next

  int next = 0;  // the step that is copied next
  const auto copy_next = [&](int stage) {
    if (next < product.steps) {
      float* const a_tile = a_tiles + stage * Tile::kFloatsA;
#pragma unroll
      for (int e = 0; e < ceil_div(kFoursA, Tile::kThreads); ++e) {
        const int four = thread + e * Tile::kThreads;
        if (kFoursA % Tile::kThreads == 0 || four < kFoursA) {
          ptx::cp_async<16>(
              a_tile + four * 4,
              weights + std::int64_t{e * (Tile::kThreads / kFoursM)} * product.padded_m);
        }
      }
      weights += std::int64_t{Tile::kBlockK} * product.padded_m;
      gather.copy(product, next, b_tiles + stage * Tile::kFloatsB);
      ++next;
    }
    ptx::cp_async_commit_group();  // also without copies, so that groups are counted as steps
  };

  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  for (int stage = 0; stage < Tile::kStages - 1; ++stage) copy_next(stage);
  int stage = 0, free_stage = Tile::kStages - 1;
  for (int step = 0; step < product.steps; ++step) {
    ptx::cp_async_wait_group<Tile::kStages - 2>();  // this step's copies by this thread have landed
    // Separates the copies of all threads from the loads below, and the last step's loads from the
    // copies into the stage that it has left.
    __syncthreads();
    copy_next(free_stage);
    tile.multiply<Tile::kBlockM, Tile::kBlockN>(a_tiles + stage * Tile::kFloatsA,
                                                b_tiles + stage * Tile::kFloatsB, sums);
    free_stage = stage;
    stage = stage + 1 == Tile::kStages ? 0 : stage + 1;
  }
  __syncthreads();  // separates the last loads from the stores of store()
  store.store(product, place, tile, sums, a_tiles);
}

conv2d::GatheredProduct planned_product(const Conv2dProblem& conv) {
  const conv2d::WindowProduct product = common_product(conv);
  return conv2d::planned<Tile>(product, conv2d::takes_table(product, Tile::kBlockK));
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  const std::int64_t rows = std::int64_t{conv.stride.h} * conv.stride.w * (conv.C / conv.groups);
  if (rows > Tile::kBlockM) {
    return text("residue classes times channels of a group are ", rows, ", more than ",
                Tile::kBlockM);
  }
  return conv2d::why_no_gather(common_product(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(planned_product(conv).packed_floats()) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const conv2d::GatheredProduct product = planned_product(conv);
  auto* packed = context.workspace_as<float>();
  launch(conv2d_dgrad_implicit_gemm_few_channels_pack_common,
         {dim3(blocks_for(product.packed_floats(), kThreads, kMaxGridX - 1)), dim3(kThreads)}, conv,
         product, arrays.weights, packed);
  const std::int64_t blocks = std::int64_t{product.n_tiles} * product.groups;
  const std::size_t shared = Tile::kFloats * sizeof(float) + conv2d::table_bytes(product);
  launch(product.table ? conv2d_dgrad_implicit_gemm_few_channels<conv2d::GatherByTable>
                       : conv2d_dgrad_implicit_gemm_few_channels<conv2d::GatherTapByTap>,
         {dim3(static_cast<unsigned>(blocks)), dim3(Tile::kThreads), shared}, product,
         StoreSquares{arrays.dx, conv}, arrays.dy, static_cast<const float*>(packed));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return planned_product(conv).table ? "a table of taps" : "tap by tap";
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_few_channels = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
