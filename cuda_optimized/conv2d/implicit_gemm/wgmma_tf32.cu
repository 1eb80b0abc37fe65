/// @file wgmma_tf32.cu
/// @brief conv2d on Hopper in TF32: the kernel of warp_specialized.cu, with 32 channels in a row of
/// a stage, and with NCHW.
///
/// - Before: warp_specialized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A row of a stage has 128 bytes, of which `wgmma` multiplies 32 at a time. In half
/// precision these are 64 channels, in float 32. TMA rounds the floats to TF32 on their way:
///
///     16 bits   c0  c1  c2  c3  c4  c5  c6   ...  c63      128 bytes, 4 wgmma of 16 channels
///     TF32      c0      c1      c2      c3   ...  c31      128 bytes, 4 wgmma of 8 channels
///
/// Stages, barriers and boxes do not change, so a sum takes twice as many steps of the same bytes
/// and cycles. TMA needs the channels innermost: NCHW arrays are transposed into the workspace.
///
/// **Expect.** With 64 filters (B4, B9) an element of x in shared memory serves 64 multiply-adds,
/// and the 128 bytes a cycle of shared memory are the limit; with 512 (B10) the tensor cores are:
/// 330 to 390 TFLOP/s, 0.6 to 0.7 ms. 1 x 1 filters (B5, B8) wait for memory. B6 and B7 have fewer
/// large tiles than the GPU has SMs: smaller tiles, or sums in parts.
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
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_packing.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_pixels.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows: one warp, the producer, brings the steps' pixels and filters from `source`;
/// the others, two warpgroups of consumers, multiply them and store the sums in `result`. Source:
/// Im2colSource or GatheredSource. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class Source, Layout kLayout>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_implicit_gemm_wgmma_tf32(const __grid_constant__ Source source, WgmmaWork work,
                                    gemm::WgmmaPlaces places, Pixels<Shape, kLayout> result) {
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
  unsigned round = 0;  // of the ring of stages, modulo 2
  if (thread >= gemm::kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!gemm::item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, reinterpret_cast<float*>(a),
                    reinterpret_cast<float*>(a + Shape::kBytesA), &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
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
    float sums[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kWgmmaStep * 4);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k8_tf32<Shape::N>(sums[i], a_at + (i * 64 * kWgmmaStep + k) / 4,
                                          b_at + k / 4, true);
        }
      }
      ptx::wgmma_commit_group();
      // All but this step's products are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    result.store_tile(item, consumer * kRows + warp * 16 + lane / 4, sums);
  }
}

Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  windows.map = conv.map;
  return windows;
}

/// Whether x and weights are copied into the workspace first, with their channels innermost.
bool repacks(const Conv2dProblem& conv) {
  return conv.layout == Layout::nchw && fits_the_copy_engine(windows_of(conv));
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = why_no_windows(conv)) return why;
  if (const Declined why = gemm::why_no_wgmma()) return why;
  switch (conv.map) {
    case TileMap::row_major: return {};  // an order of its own, without a grid
    case TileMap::stream_k: return "the map stream_k: all tiles are cut into the same parts";
    default: return why_no_grid(smallest_tiles(windows_of(conv)));
  }
}

/// The workspace, front to back.
struct Workspace {
  float *x, *weights;  ///< Copies, where repacks().
  float* parts;        ///< Of sums.
  std::size_t bytes;   ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const Conv2dProblem& conv, std::byte* begin) {
  const Windows windows = windows_of(conv);
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

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, Layout kLayout, class Source>
void launch_product(const Source& source, const WgmmaWork& work,
                    const Pixels<Shape, kLayout>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const gemm::WgmmaPlaces places(work);
  launch(
      conv2d_implicit_gemm_wgmma_tf32<Shape, Source, kLayout>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// Computes out, of kLayout, with tiles of Shape and sums in `splits` parts; with Narrow ones where
/// TMA cannot read the arrays. Returns without waiting.
template <class Shape, Layout kLayout>
void launch_with(const Windows& windows, int splits, const WindowArrays& arrays) {
  const WgmmaWork work = work_of<Shape>(windows, splits);
  const auto result = pixels_of<Shape, kLayout>(windows, splits, arrays);
  if (by_the_copy_engine(windows, arrays)) {
    launch_product(im2col_source<Shape>(windows, arrays.source, arrays.weights), work, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product(gathered_source<Shape>(windows, arrays), work, result);
  } else {
    launch_with<Narrow, kLayout>(windows, splits, arrays);
    return;  // parts are added up there
  }
  if (splits > 1) {
    launch_sum_splits(arrays.parts, splits, windows.out_size(), arrays.bias, windows.plane(),
                      windows.K, windows.activation, arrays.out);
  }
}

/// Computes out; returns without waiting.
void launch_windows(const Windows& windows, const WindowArrays& arrays) {
  if (windows.pixels() == 0) return;
  const auto [shape, splits] = plan_of(windows);
  const auto with = [&]<class Shape>(Shape) {
    if (windows.layout == Layout::nchw) {
      launch_with<Shape, Layout::nchw>(windows, splits, arrays);
    } else {
      launch_with<Shape, Layout::nhwc>(windows, splits, arrays);
    }
  };
  switch (shape) {
    case WindowPlan::narrow: with(Narrow{}); break;
    case WindowPlan::tall: with(Tall{}); break;
    case WindowPlan::medium: with(Medium{}); break;
    case WindowPlan::large: with(Large{}); break;
  }
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  Windows windows = windows_of(conv);
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
    pack_source(windows, product.source, work.x);
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
  launch_windows(windows, product);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  Windows windows = windows_of(conv);
  if (!repacks(conv)) return in_words(windows, conv.layout, conv.layout);
  windows.group_c = padded_channels(windows.group_c);
  return text("repacked, ", in_words(windows, Layout::nhwc, Layout::nhwc));
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_wgmma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
