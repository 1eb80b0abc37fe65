/// @file warp_specialized.cu
/// @brief Warp-specialized `wgmma` in half precision: both operands are MN-major, and the tensor
/// cores transpose them.
///
/// - Before: mma.cu
/// - After: hopper/halo_tile.cu, hopper/split_k_1x1.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** The sums run over pixels, and in NHWC both operands are MN-major: x has the
/// channels of a pixel contiguous, dy its filters. Earlier rungs transpose tiles while they store
/// them, 4 bytes at a time. In half precision `wgmma` has a transpose bit per operand: boxes of 64
/// pixels are copied unchanged, and the tensor cores read them transposed:
///
///     x   64 pixels of a tap      c0 c1 ... c63      rows of the GEMM: channels of a tap
///         (im2col, as forward)    c0 c1 ... c63         dw^T [r s c][k]  =  x^T dy
///     dy  the same 64 pixels      k0 k1 ... k63      columns: filters
///
/// A tile of rows is two *pieces*, 64 channels of one tap each, one for each consumer warpgroup.
/// There are few tiles and many pixels, so K is split (split-K): a model of waves and bytes chooses
/// the number of parts, which a second kernel adds in order.
///
/// **Expect.** Steps as in the forward pass: with 256 filters per tile (B6, B7, B10) 48 KB for 1024
/// cycles of the tensor cores, 500 to 600 TFLOP/s less what the parts cost: B10 430 us. With 64
/// filters (B4, B9) shared memory limits to 58 % of the peak: B4 25 us, B9 140 us. db reads dy once
/// more, 2 to 30 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 5 * 4 * (2 + 1) = 60, five tiles, four steps, three boxes
/// @expect bytes_per_lane.shared.async 64 * 64 * 2 = 8192, a box
/// @expect lanes_per_request.dw.store 32, floats
/// **Costs.** A workspace for the parts. Channels and filters of a group in multiples of 8,
/// otherwise the producer warp gathers, slowly. Not supported: other types, nchw, over 1024 taps,
/// GPUs other than sm_90a.
/// **Try.** For 64 filters, let channels be the columns, four pieces at a time, and filters the
/// rows. What share of the last tile is empty for B4?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

using gemm::WgmmaItem;
using gemm::WgmmaWork;

/// dw [K][R][S][C/groups], or parts of it one after the other, where the sums go.
template <class Shape>
struct WeightSums {
  float* dw;                           ///< or the first part
  std::int64_t part;                   ///< floats from a part to the next
  conv2d::FilterTiles<Shape> filters;  ///< of the tiles' columns
  Pieces pieces;                       ///< of a group

  /// Stores a warpgroup's accumulators [64 channels][filters] of a piece. A request of a warp is
  /// four filters, of each eight channels: whole sectors.
  __device__ void store_tile(const WgmmaItem& item, int consumer,
                             const float (&accumulators)[Shape::N / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int piece = static_cast<int>(item.m) * gemm::kConsumers + consumer;
    if (piece >= pieces.count) return;
    const int c = thread / 32 * 16 + lane / 4;  // and the one 8 below
    const int channels = pieces.group_c - piece % pieces.per_tap * kHalfColumns;
    const int k = filters.first(item.n);
    const int count = (filters.group(item.n) + 1) * filters.group_k - k;  // to the group's end
    const std::int64_t filter = std::int64_t{pieces.taps} * pieces.group_c;
    float* const to = dw + item.split * part + k * filter + pieces.offset(piece) + c;
#pragma unroll
    for (int i = 0; i < Shape::N / 2; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2, below = i / 2 % 2 * 8;
      if (column < count && c + below < channels) to[column * filter + below] = accumulators[i];
    }
  }
};

/// Sums over pixels: one warp, the producer, loads the steps' pieces of x and dy from `source`; the
/// others, two consumer warpgroups, multiply a piece each and store the sums in `result`. Source:
/// Im2colPieces or GatheredPieces. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class T, class Source>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_wgrad_implicit_gemm_warp_specialized(const __grid_constant__ Source source,
                                                WgmmaWork work, gemm::WgmmaPlaces places,
                                                WeightSums<Shape> result) {
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
  unsigned phase = 0;  // of the barriers, modulo 2
  if (thread >= gemm::kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!gemm::item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&empty[stage], phase ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        // for each pixel i of the 64 of the step:
        //   a[piece][i][c] = x[window of i, shifted by the piece's tap][64 channels c]
        //   b[i][k] = dy[i][filter + k]
        source.load(cursor, a, a + Shape::kBytesA, &full[stage]);
        source.advance(cursor);  // 64 pixels on
        if (++stage == Shape::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128;
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    float accumulators[Shape::N / 2];
#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) accumulators[j] = 0.0f;
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at =
          ptx::wgmma_row_major_descriptor(a + consumer * kPieceBytes, kPieceBytes);
      const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, kPieceBytes);
      // for each channel c, filter k, and pixel i of the 64:
      //   accumulators[c][k] += a[consumer][i][c] * b[i][k]
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
        // Descriptors count in units of 16 bytes: from pixel to pixel of both.
        conv2d::wgmma_half<Shape::N, T, true, true>(accumulators, a_at + k * kHalfColumns / 8,
                                                    b_at + k * kHalfColumns / 8);
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

    // dw[filter + k][tap of the piece][c] = accumulators[c][k]; or a part of it
    result.store_tile(item, consumer, accumulators);
  }
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(half_part_floats(conv) + sum_pixels_floats(conv)) * sizeof(float);
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source>
void launch_product(const Source& source, const WgmmaWork& work, const WeightSums<Shape>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const gemm::WgmmaPlaces places(work);
  launch(
      conv2d_wgrad_implicit_gemm_warp_specialized<Shape, T, Source>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// Computes dw with tiles of Shape; with Narrow ones where TMA cannot read the arrays.
template <class Shape, class T>
void launch_with(const Conv2dProblem& conv, int splits, const T* x, const T* dy, float* dw) {
  const Windows windows = half_windows_of(conv);
  const conv2d::FilterTiles<Shape> filters(windows);
  const Pieces pieces(conv);
  const WgmmaWork work = half_work_of<Shape>(conv, splits);
  const WeightSums<Shape> result = {dw, weights_of(conv), filters, pieces};
  if (half_rows_for_tma(conv) && gemm::begin_at_16_bytes(x, dy)) {
    launch_product<Shape, T>(im2col_pieces<Shape>(windows, pieces, x, dy), work, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product<Shape, T>(
        GatheredPieces<Shape, T>{{x, windows, conv.C / conv.groups}, dy, filters, pieces}, work,
        result);
  } else {
    launch_with<Narrow, T>(conv, splits, x, dy, dw);
  }
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  float *dw = arrays.dw, *db = arrays.db;
  const std::int64_t weights = weights_of(conv);
  if (conv.N == 0) {
    const auto zero = [](float* to, std::int64_t count) {
      check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(count) * sizeof(float),
                            current_stream()));
    };
    zero(dw, weights);
    zero(db, conv.K);
    return;
  }
  float* const parts = context.workspace_as<float>();
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    with_half_shape(conv, [&]<class Shape>(Shape) {
      const int splits = half_splits_of<Shape>(conv);
      launch_with<Shape, T>(conv, splits, x, dy, splits > 1 ? parts : dw);
      if (splits > 1) {
        conv2d::launch_sum_splits(parts, splits, weights, nullptr, 1, 1, Activation::none, dw);
      }
    });
    launch_sum_pixels<T>(conv, dy, parts + half_part_floats(conv), db);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (conv.N == 0) return "zeros";
  return with_half_shape(conv, [&]<class Shape>(Shape) {
    return text(dtype_name(conv.dtype, conv.precision), ", ", Shape::N, " filters, ",
                half_splits_of<Shape>(conv) > 1 ? "parts" : "whole sums",
                half_rows_for_tma(conv) ? ", by TMA" : ", by a warp");
  });
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_warp_specialized = {
    .supports = conv2d::why_no_half_windows,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
