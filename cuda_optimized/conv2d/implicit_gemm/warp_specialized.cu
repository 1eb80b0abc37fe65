/// @file warp_specialized.cu
/// @brief conv2d on Hopper in half precision: a producer warp loads, two consumer warpgroups
/// multiply, and a block computes one tile after the other.
///
/// - Before: wgmma.cu
/// - After: halo_tile.cu, wgmma_tf32.cu, hopper/swap_ab.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** In wgmma.cu, all warps meet at a barrier in each step, and a block ends with its
/// tile: the next block on the SM fills its stages from the start. Here the roles are separate
/// (warp specialization), and two mbarriers for each stage connect them:
///
///     full[stage]    arrives: TMA, with the last byte      waits: the consumers, before wgmma
///     empty[stage]   arrive: all warps of the consumers,   waits: the producer, before it loads
///                    when wgmma has read the stage         into the stage again
///
/// The kernel is persistent: the grid has as many blocks as the GPU holds at a time, and each
/// computes every gridDim.x-th tile. The producer runs ahead into the next tile while the consumers
/// store this one. Where there are too few tiles, several blocks compute parts of the sums of a
/// tile, and a second kernel adds the parts (split-K).
///
/// **Expect.** With 512 filters (B10) the tensor cores limit: 550 to 600 TFLOP/s, 400 us; with 64
/// (B4, B9) shared memory, at 58 % of the peak: 25 and 150 us. 1 x 1 filters (B5, B8) wait for
/// memory and for the stores, of 4 bytes a lane: 25 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests_per_block.shared.async 2 * 9 = 18, a tap: a box of pixels, one of weights
/// @expect lanes_per_request.shared.async 1, one thread issues a box
/// @expect bytes_per_lane.shared.async (128 + 64) * 64 * 2 / 2 = 12288, 64 channels
/// @expect bytes_per_lane.y.store 4, two filters
/// @expect lanes.global.load 0
/// **Costs.** Mostly one block an SM: while its consumers store, 4 bytes a lane, nothing is
/// multiplied. With few steps a tile, the two or three blocks of wgmma.cu are faster; with few
/// tiles (B7), split-K is. The producer warp copies slowly what TMA cannot load. Not supported:
/// other types, NCHW, over 1024 taps, the map stream_k, all but compute capability 9.0.
/// **Try.** Which layers of a network have fewer than 64 channels, and how much of a step do they
/// waste?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/half_pixels.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows: one warp, the producer, loads the steps' pixels and filters from `source`;
/// the others, two consumer warpgroups, multiply them and store the sums in `result`. Source:
/// Im2colSource or GatheredHalves. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class T, class Source>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_implicit_gemm_warp_specialized(const __grid_constant__ Source source, WgmmaWork work,
                                          gemm::WgmmaPlaces places, HalfPixels<Shape, T> result) {
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
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          wgmma_along_k<Shape::N, T>(sums[i], a_at + (i * 64 * kHalfStep + k) / 8, b_at + k / 8);
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

/// What there is to compute, with channels in words.
Windows windows_of(const Conv2dProblem& conv) {
  Windows windows = windows_of(forward_product(conv), conv.layout);
  windows.activation = conv.activation;
  windows.map = conv.map;
  return in_words(windows);
}

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv) {
  return in_eights(conv.C / conv.groups) && fits_the_copy_engine(windows_of(conv));
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  switch (conv.map) {
    case TileMap::row_major: return {};  // an order of its own, without a grid
    case TileMap::stream_k: return "the map stream_k: all tiles are cut into the same parts";
    default: return why_no_grid(smallest_tiles(windows_of(conv)));
  }
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(part_floats(windows_of(conv))) * sizeof(float);
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, class T, class Source>
void launch_product(const Source& source, const WgmmaWork& work,
                    const HalfPixels<Shape, T>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const gemm::WgmmaPlaces places(work);
  launch(
      conv2d_implicit_gemm_warp_specialized<Shape, T, Source>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// Computes y with tiles of Shape; with Narrow ones where TMA cannot read the arrays.
template <class Shape, class T>
void run_with(const Conv2dProblem& conv, const Conv2dArrays& arrays, int splits, float* parts) {
  const Windows windows = windows_of(conv);
  const T *x = arrays.x, *weights = arrays.weights;
  const WgmmaWork work = work_of<Shape>(windows, splits);
  const auto result = half_pixels_of<Shape, T>(windows, arrays.bias, arrays.y, parts);
  if (by_the_copy_engine(conv) && gemm::begin_at_16_bytes(x, weights)) {
    launch_product(im2col_source<Shape>(windows, words_of(x), words_of(weights)), work, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product(
        GatheredHalves<Shape, T>{
            {x, windows, conv.C / conv.groups}, weights, FilterTiles<Shape>(windows)},
        work, result);
  } else {
    run_with<Narrow, T>(conv, arrays, splits, parts);
  }
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const Windows windows = windows_of(conv);
  if (windows.pixels() == 0) return;
  const auto [shape, splits] = plan_of(windows);
  float* const parts = splits > 1 ? context.workspace_as<float>() : nullptr;
  with_half_type(conv.dtype, [&, shape = shape, splits = splits]<class T>(T) {
    switch (shape) {
      case WindowPlan::narrow: run_with<Narrow, T>(conv, arrays, splits, parts); break;
      case WindowPlan::tall: run_with<Tall, T>(conv, arrays, splits, parts); break;
      case WindowPlan::medium: run_with<Medium, T>(conv, arrays, splits, parts); break;
      case WindowPlan::large: run_with<Large, T>(conv, arrays, splits, parts); break;
    }
    if (splits > 1) launch_sum_half_splits<T>(windows, parts, splits, arrays.bias, arrays.y);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              half_plan_in_words(windows_of(conv), by_the_copy_engine(conv)));
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_warp_specialized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
