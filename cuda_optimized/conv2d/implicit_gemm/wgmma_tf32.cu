/// @file wgmma_tf32.cu
/// @brief TF32 `wgmma`: the kernel of warp_specialized.cu with 32 channels per 128-byte row, also
/// for NCHW.
///
/// - Before: warp_specialized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A row of a stage has 128 bytes, of which one `wgmma` multiplies 32. In half
/// precision a row has 64 channels, in TF32 32. TMA rounds the floats to TF32 during the copy:
///
///     16 bits   c0  c1  c2  c3  c4  c5  c6   ...  c63      128 bytes, 4 wgmma of 16 channels
///     TF32      c0      c1      c2      c3   ...  c31      128 bytes, 4 wgmma of 8 channels
///
/// Stages, barriers and boxes do not change, so a tile takes twice as many steps of the same bytes
/// and cycles. TMA needs the channels innermost: NCHW arrays are transposed into the workspace.
///
/// **Expect.** With 64 filters (B4, B9) an element of x in shared memory is used in 64
/// multiply-adds, and the 128 bytes per cycle of shared memory are the limit; with 512 (B10) the
/// tensor cores are: 330 to 390 TFLOP/s, 0.6 to 0.7 ms. 1 x 1 filters (B5, B8) wait for memory. B6
/// and B7 have fewer large tiles than the GPU has SMs: smaller tiles, or split-K.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect requests_per_block.shared.async 2 * 9 = 18, a tap: a box of pixels, one of weights
/// @expect lanes_per_request.shared.async 1, one thread issues a box
/// @expect bytes_per_lane.shared.async (128 + 64) * 32 * 4 / 2 = 12288, 128 pixels or 64 filters
/// @expect lanes.global.load 0
/// **Costs.** What TMA cannot load (stride over 8, padding over 128, channels of a group that are
/// no multiple of 4), the producer warp copies element by element, which is slow. A step always has
/// 32 channels: a depthwise convolution wastes 31. Not supported: fp32 problems, filters of over
/// 1024 taps, the map stream_k, all but compute capability 9.0.
/// **Try.** Let the taps be the inner loop along k and the channels the outer one. Are there more
/// or fewer bytes from the L2 cache, and is it faster?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/implicit_gemm/wgmma_tf32.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_result.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows. One warp, the producer, loads the steps' pixels and weights; the others, two
/// consumer warpgroups, multiply them and store the accumulators.
/// Operands: TmaOperands or GatheredOperands. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class Operands, Layout kLayout>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_implicit_gemm_wgmma_tf32(const __grid_constant__ Operands operands, WgmmaWork work,
                                    gemm::WgmmaPlaces places,
                                    WindowResult<Shape, float, kLayout> result) {
  // full: the stage has arrived; empty: all eight consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], gemm::kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned phase = 0;  // of the stage's barriers, modulo 2: how often the ring has been used
  if (thread >= gemm::kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Operands::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!gemm::item_at(work, places, index, &item)) continue;
      auto cursor = operands.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&empty[stage], phase ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        // a[i][c] = source[n][p * stride + first + r * dilation][...][c]  of 128 pixels i, or 256
        // b[j][c] = weights[filter + j][r][s][c]
        operands.load(cursor, a, a + Shape::kBytesA, &full[stage]);
        operands.advance(cursor);  // c += 32, then ++s, then ++r
        if (++stage == Shape::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / gemm::kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    float accumulators[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) accumulators[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kWgmmaStep * 4);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      // for each row i of the consumer, filter j, and channel c of the 32:
      //   accumulators[i][j] += a[i][c] * b[j][c]
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k8_tf32<Shape::N>(accumulators[i], a_at + (i * 64 * kWgmmaStep + k) / 4,
                                          b_at + k / 4, true);
        }
      }
      ptx::wgmma_commit_group();
      // Waits for the wgmma of the previous step: its stage may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    // out[pixel of row i][filter + j] = activation(accumulators[i][j] + bias[filter + j])
    result.store_tile(item, consumer * kRows + warp * 16 + lane / 4, accumulators);
  }
}

/// Whether TMA can read arrays of these layouts, if they are aligned to 16 bytes.
bool takes_tma(const Windows& windows, Layout source, Layout weights) {
  return fits_im2col(windows) && windows.group_c % 4 == 0 && source == Layout::nhwc &&
         weights == Layout::nhwc;
}

/// Launches as many blocks as are resident at the same time, but no more than there are parts of
/// tiles.
template <class Shape, Layout kLayout, class Operands>
void launch_product(const Operands& operands, const Windows& windows, int splits,
                    const WindowArrays& arrays) {
  const WgmmaWork work = work_of<Shape>(windows, splits);
  const gemm::WgmmaPlaces places(work);
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  launch(
      conv2d_implicit_gemm_wgmma_tf32<Shape, Operands, kLayout>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      operands, work, places,
      WindowResult<Shape, float, kLayout>(windows, arrays.bias, arrays.out,
                                          splits > 1 ? arrays.parts : nullptr));
}

/// Computes out, of kLayout, with the shape and the parts of the plan.
template <Layout kLayout>
void launch_with(const Windows& windows, const WindowArrays& arrays) {
  const WindowPlan plan = plan_of(windows);
  const bool by_tma = takes_tma(windows, arrays.source_layout, arrays.weights_layout) &&
                      gemm::begin_at_16_bytes(arrays.source, arrays.weights);
  with_shape(plan, by_tma, [&]<class Shape>(Shape) {
    if (by_tma) {
      launch_product<Shape, kLayout>(
          tf32_tma_operands<Shape>(windows, arrays.source, arrays.weights), windows, plan.splits,
          arrays);
    } else if constexpr (std::is_same_v<Shape, Narrow>) {
      Windows in_memory = windows;
      in_memory.layout = arrays.source_layout;
      launch_product<Shape, kLayout>(
          GatheredOperands<Shape, float>{.pixels = {arrays.source, in_memory, windows.group_c},
                                         .weights = arrays.weights,
                                         .weights_layout = arrays.weights_layout,
                                         .filters = FilterTiles<Shape>(windows)},
          windows, plan.splits, arrays);
    }
  });
  if (plan.splits > 1) {
    launch_sum_splits(arrays.parts, plan.splits, windows.out_size(), arrays.bias, windows.plane(),
                      windows.K, windows.activation, arrays.out);
  }
}

/// Whether x and weights are copied into the workspace first, with their channels innermost.
bool repacks(const Conv2dProblem& conv) {
  return conv.layout == Layout::nchw && fits_im2col(forward_windows(conv));
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_tf32_windows(conv)) return why;
  return why_no_tile_map(forward_windows(conv));
}

/// The workspace, front to back.
struct Workspace {
  float *x, *weights;  ///< Copies, where repacks().
  float* parts;        ///< Of sums.
  std::size_t bytes;   ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const Conv2dProblem& conv, std::byte* begin) {
  const Windows windows = forward_windows(conv);
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  if (repacks(conv)) {
    work.x = cutter.take<float>(packed_source_floats(windows));
    work.weights = cutter.take<float>(conv.K * taps * padded_channels(windows.group_c));
  }
  work.parts = cutter.take<float>(part_floats(windows));
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) { return workspace_at(conv, nullptr).bytes; }

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  Windows windows = forward_windows(conv);
  const Workspace work = workspace_at(conv, context.workspace_as<std::byte>());
  WindowArrays product = {.source = arrays.x,
                          .weights = arrays.weights,
                          .bias = arrays.bias,
                          .source_layout = conv.layout,
                          .weights_layout = conv.layout,
                          .out = arrays.y,
                          .parts = work.parts};
  if (repacks(conv)) {
    const int padded = padded_channels(windows.group_c), taps = conv.R * conv.S;
    launch_pack_source(windows, product.source, work.x);
    gemm::launch_transpose({.axes = {{.count = conv.K,
                                      .from = std::int64_t{windows.group_c} * taps,
                                      .to = std::int64_t{padded} * taps},
                                     {},
                                     {}},
                            .rows = windows.group_c,
                            .columns = taps,
                            .from_row = taps,
                            .from_column = 1,
                            .to_row = padded,
                            .padded = padded},
                           product.weights, work.weights);
    product.source = work.x;
    product.weights = work.weights;
    product.source_layout = product.weights_layout = Layout::nhwc;
    windows.group_c = padded;
  }
  launch_windows_tf32(windows, product);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  Windows windows = forward_windows(conv);
  if (!repacks(conv)) return windows_tf32_in_words(windows, conv.layout, conv.layout);
  windows.group_c = padded_channels(windows.group_c);
  return text("repacked, ", windows_tf32_in_words(windows, Layout::nhwc, Layout::nhwc));
}

}  // namespace

void launch_windows_tf32(const Windows& windows, const WindowArrays& arrays) {
  if (windows.pixels() == 0) return;
  if (windows.layout == Layout::nchw) {
    launch_with<Layout::nchw>(windows, arrays);
  } else {
    launch_with<Layout::nhwc>(windows, arrays);
  }
}

std::string windows_tf32_in_words(const Windows& windows, Layout source, Layout weights) {
  return plan_in_words(windows, takes_tma(windows, source, weights));
}

void launch_pack_source(const Windows& windows, const float* source, float* packed) {
  const int padded = padded_channels(windows.group_c), image = windows.H * windows.W;
  const std::int64_t pixel = std::int64_t{windows.groups} * padded;
  const std::int64_t group = std::int64_t{windows.group_c} * image;
  gemm::launch_transpose(
      {.axes = {{.count = windows.N, .from = windows.groups * group, .to = image * pixel},
                {.count = windows.groups, .from = group, .to = padded},
                {}},
       .rows = windows.group_c,
       .columns = image,
       .from_row = image,
       .from_column = 1,
       .to_row = pixel,
       .padded = padded},
      source, packed);
}

extern const Implementation<Conv2dArrays> implicit_gemm_wgmma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
