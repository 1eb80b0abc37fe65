/// @file warp_specialized.cu
/// @brief Warp specialization: a producer warp loads, two consumer warpgroups multiply, in a
/// persistent kernel.
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
/// store this one. Where there are too few tiles, several blocks compute parts of the accumulators
/// of a tile, and a second kernel adds the parts (split-K).
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
#include "cuda_optimized/conv2d/implicit_gemm/warp_specialized.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_result.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Sums over windows. One warp, the producer, loads the steps' pixels and weights; the others, two
/// consumer warpgroups, multiply them and store the accumulators.
/// Operands: TmaOperands or GatheredOperands. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class T, class Operands>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_implicit_gemm_warp_specialized(const __grid_constant__ Operands operands, WgmmaWork work,
                                          gemm::WgmmaPlaces places, WindowResult<Shape, T> result) {
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
        operands.advance(cursor);  // c += 32 words, then ++s, then ++r
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
      const char* b = a + Shape::kBytesA;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
      // for each row i of the consumer, filter j, and channel c of the 64:
      //   accumulators[i][j] += a[i][c] * b[j][c]      transposed weights: b[c][j]
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes: 16 channels are 32 bytes of a row, or 16 rows.
          const std::uint64_t a_k = a_at + (i * 64 * kHalfStep + k) / 8;
          if constexpr (Operands::kTransposed) {
            wgmma_half<Shape::N, T, true>(
                accumulators[i], a_k,
                ptx::wgmma_row_major_descriptor(b, gemm::kPieceBytes) + k * gemm::kHalfColumns / 8);
          } else {
            wgmma_half<Shape::N, T>(accumulators[i], a_k, ptx::wgmma_descriptor(b) + k / 8);
          }
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

/// Launches as many blocks as are resident at the same time, but no more than there are parts of
/// tiles.
template <class Shape, class T, class Operands>
void launch_product(const Operands& operands, const Windows& windows, int splits,
                    const WindowResult<Shape, T>& result) {
  const WgmmaWork work = work_of<Shape>(windows, splits);
  const gemm::WgmmaPlaces places(work);
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  launch(
      conv2d_implicit_gemm_warp_specialized<Shape, T, Operands>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      operands, work, places, result);
}

/// Launches the kernel for the order of the weights, and for the way in which the operands are
/// loaded.
template <bool kTransposed, class Shape, class T>
void launch_with(const HalfProduct& product, bool by_tma, int splits, const T* source,
                 const T* weights, const WindowResult<Shape, T>& result) {
  const Windows& windows = product.windows;
  if (by_tma) {
    launch_product(
        half_tma_operands<Shape, kTransposed>(product, words_of(source), words_of(weights)),
        windows, splits, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product(
        GatheredOperands<Shape, T, kTransposed>{.pixels = {source, windows, product.group_c},
                                                .weights = weights,
                                                .weights_layout = Layout::nhwc,
                                                .filters = FilterTiles<Shape>(windows),
                                                .filter_taps = product.filter_taps,
                                                .taps = product.taps},
        windows, splits, result);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  return why_no_tile_map(forward_product_of(conv).windows);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(part_floats(forward_product_of(conv).windows)) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  launch_windows_half(
      forward_product_of(conv),
      {.source = arrays.x, .weights = arrays.weights, .bias = arrays.bias, .out = arrays.y},
      context.workspace_as<float>());
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              windows_half_in_words(forward_product_of(conv)));
}

}  // namespace

void launch_windows_half(const HalfProduct& product, const HalfArrays& arrays, float* workspace) {
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  const WindowPlan plan = plan_of(windows);
  float* const parts = plan.splits > 1 ? workspace : nullptr;
  with_half_type(product.dtype, [&]<class T>(T) {
    const T *source = arrays.source, *weights = arrays.weights;
    T* const out = arrays.out;
    const bool by_tma =
        product.rows_for_tma() && fits_im2col(windows) && gemm::begin_at_16_bytes(source, weights);
    with_shape(plan, by_tma, [&]<class Shape>(Shape) {
      const WindowResult<Shape, T> result(windows, arrays.bias, out, parts);
      if (product.transposed) {
        launch_with<true>(product, by_tma, plan.splits, source, weights, result);
      } else {
        launch_with<false>(product, by_tma, plan.splits, source, weights, result);
      }
    });
    if (plan.splits > 1) {
      launch_sum_splits(parts, plan.splits, windows.out_size(), arrays.bias, 1, windows.K,
                        windows.activation, out);
    }
  });
}

std::string windows_half_in_words(const HalfProduct& product) {
  return plan_in_words(product.windows, product.rows_for_tma() && fits_im2col(product.windows));
}

extern const Implementation<Conv2dArrays> implicit_gemm_warp_specialized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
