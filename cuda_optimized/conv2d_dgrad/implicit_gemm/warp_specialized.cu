/// @file warp_specialized.cu
/// @brief conv2d_dgrad on Hopper in 16 bits: the weights are read as they lie.
///
/// - Before: wgmma_tf32.cu
/// - After: hopper/halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** As wgmma_tf32.cu: a forward pass over dy for each residue of the
/// stride. Its sums run over dy's channels k. The forward pass's weights lie along its own sums,
/// [k][r][s][c], so that for TF32, which `wgmma` takes along the sum alone, a kernel copies them
/// first as [c][taps][k]. For numbers of 16 bits `wgmma` has a bit "transpose b": a box of 64 k and
/// 64 c of one tap goes to shared memory as it lies, and is read there across its rows:
///
///     weights [K][R*S][C]     tap t:  k0  |.. c0 c1 c2 ... c63 ..|       b of the product dy b,
///                                     k1  |.. c0 c1 c2 ... c63 ..|  ->   row-major: rows of k,
///                             R*S*C apart k2  ...                        dx's channels across
///
/// The map of the array has an axis for groups, so that what lies behind a group's last k is zeros,
/// and not the next group's weights. Which tap a step takes, and in which order, is arithmetic on
/// the box's place; no copy, no second kernel, no workspace.
///
/// **Expect.** The forward pass's times; one launch where TF32 has two for each class, and 3 to 8
/// us less for it: B4 25 us, B10 400 us. B8, 1 x 1 with stride 2, zeroes dx first.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * 9 * 2 = 36, two tiles, 9 steps, two boxes
/// @expect bytes_per_lane.shared.async (128 + 64) * 64 * 2 / 2 = 12288, twice the channels
/// @expect bytes_per_lane.dx.store 4, two numbers
/// @expect lanes.global.load 0, nor does a kernel copy weights
/// **Costs.** Channels of a group in eights, on both sides, else the producer warp gathers: right,
/// and slow. Declined: other types, nchw, filters of over 1024 taps, all but compute
/// capability 9.0.
/// **Try.** Leave the axis of the groups out of the map. Which problems does that break, and why
/// does zeroing dy alone behind a group's last channel not help where a weight is infinite?
#include <type_traits>

#include "core/conv2d_gradients.hpp"
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
#include "cuda_optimized/conv2d_dgrad/shared/half_classes.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::HalfPixels;
using conv2d::kHalfStep;
using conv2d::Large;
using conv2d::Medium;
using conv2d::Narrow;
using conv2d::Tall;
using conv2d::WgmmaItem;
using conv2d::WgmmaWork;
using conv2d::WindowPlan;

/// Sums over windows: one warp, the producer, brings the steps' pixels and weights from `source`;
/// the others, two warpgroups of consumers, multiply them and store the sums in `result`. Source:
/// Im2colClass or GatheredClass. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class T, class Source>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_dgrad_implicit_gemm_warp_specialized(const __grid_constant__ Source source,
                                                WgmmaWork work, gemm::WgmmaPlaces places,
                                                HalfPixels<Shape, T> result) {
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
      const std::uint64_t b_at =
          ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, gemm::kPieceBytes);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
          gemm::wgmma_m64k16<Shape::N, T>(sums[i], a_at + (i * 64 * kHalfStep + k) / 8,
                                          b_at + k * gemm::kHalfColumns / 8);
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

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv, const Windows& windows) {
  return conv2d::in_eights(conv.K / conv.groups) && conv2d::in_eights(conv.C / conv.groups) &&
         fits_the_copy_engine(windows);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(HalfClassesPlan(conv).parts) * sizeof(float);
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, class T, class Source>
void launch_product(const Source& source, const WgmmaWork& work,
                    const HalfPixels<Shape, T>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const gemm::WgmmaPlaces places(work);
  launch(
      conv2d_dgrad_implicit_gemm_warp_specialized<Shape, T, Source>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// Computes a class with tiles of Shape; with Narrow ones where TMA cannot read the
/// arrays.
template <class Shape, class T>
void run_with(const Conv2dProblem& conv, const HalfClass& part, const Conv2dDgradArrays& arrays,
              int splits, float* parts) {
  const Windows& windows = part.windows;
  const T *dy = arrays.dy, *weights = arrays.weights;
  const WgmmaWork work = conv2d::work_of<Shape>(windows, splits);
  const auto result = conv2d::half_pixels_of<Shape, T>(windows, nullptr, arrays.dx, parts);
  if (by_the_copy_engine(conv, windows) && gemm::begin_at_16_bytes(dy, weights)) {
    launch_product(im2col_class<Shape>(conv, windows, part.taps, dy, weights), work, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product(GatheredClass<Shape, T>{{dy, windows, conv.K / conv.groups},
                                           weights,
                                           conv.R * conv.S,
                                           conv2d::FilterTiles<Shape>(windows),
                                           part.taps},
                   work, result);
  } else {
    run_with<Narrow, T>(conv, part, arrays, splits, parts);
  }
}

template <class T>
void run_class(const Conv2dProblem& conv, const HalfClass& part, const Conv2dDgradArrays& arrays,
               float* workspace) {
  const auto [shape, splits] = plan_of(part.windows);
  float* const parts = splits > 1 ? workspace : nullptr;
  switch (shape) {
    case WindowPlan::narrow: run_with<Narrow, T>(conv, part, arrays, splits, parts); break;
    case WindowPlan::tall: run_with<Tall, T>(conv, part, arrays, splits, parts); break;
    case WindowPlan::medium: run_with<Medium, T>(conv, part, arrays, splits, parts); break;
    case WindowPlan::large: run_with<Large, T>(conv, part, arrays, splits, parts); break;
  }
  if (splits > 1)
    conv2d::launch_sum_half_splits<T>(part.windows, parts, splits, nullptr, arrays.dx);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  if (size == 0) return;
  const HalfClassesPlan plan(conv);
  with_half_type(conv.dtype, [&]<class T>(T) {
    if (!plan.all_pixels) {
      check(cudaMemsetAsync(arrays.dx.as<T>(), 0, static_cast<std::size_t>(size) * sizeof(T),
                            current_stream()));
    }
    for (const HalfClass& part : plan.classes)
      run_class<T>(conv, part, arrays, context.workspace_as<float>());
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const HalfClassesPlan plan(conv);
  std::string first = "zeros";
  bool all_alike = true;
  for (const HalfClass& part : plan.classes) {
    const std::string words =
        half_plan_in_words(part.windows, by_the_copy_engine(conv, part.windows));
    if (&part == plan.classes.data()) first = words;
    all_alike = all_alike && words == first;
  }
  return text(dtype_name(conv.dtype, conv.precision), ", ", first,
              all_alike ? "" : ", classes differ",
              plan.classes.size() == 1 ? ", one class" : ", several classes",
              plan.all_pixels ? "" : ", zeros between them");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_warp_specialized = {
    .supports = conv2d::why_no_half_windows,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
