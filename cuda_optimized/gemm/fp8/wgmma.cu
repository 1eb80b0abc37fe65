/// @file wgmma.cu
/// @brief FP8 `wgmma`: each stage's accumulators are promoted to FP32 totals, because FP8
/// accumulates with 13 fraction bits.
///
/// - Before: tf32/wgmma.cu
/// - After: taller_tiles.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** FP8 (e4m3) halves the bytes of half precision and doubles the throughput of the
/// tensor cores: a stage of the same size has 128 steps of k, and one `wgmma` takes 32. But FP8
/// `wgmma` truncates all products and the accumulator to 13 fraction bits, relative to the largest
/// of them: an accumulator of 2^14 no longer changes by adding 1. So the accumulators of a stage,
/// four `wgmma`, are added to FP32 totals, and the next stage starts at zero.
///
///     k:      0      32     64     96     128    160    192    224    256
///     part    0 ---->+----->+----->+----->|0 --->+----->+----->+----->|0     wgmma, 13 bits
///     sums    0                           +part                       +part  float, 24 bits
///
/// While one consumer adds, the wgmma of the other run. FP8 operands must be K-major: a kernel
/// transposes b, as in tf32/wgmma.cu. TMA copies four elements as one word.
///
/// **Expect.** A step of a tile of 128 x 128 loads 32 KB for 512 cycles of the tensor cores: 64
/// bytes per cycle and SM, where the L2 cache delivers about 34. That is 53 % of 1979 TFLOP/s.
/// Predicted on an H200: 1000 to 1100 TFLOP/s at 8192 (1050 us), 130 us at 4096; the transposition
/// of b takes 35 us and 9 us of these.
/// @expect on --m 128 --n 128 --k 256 --dtype fp8
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, two tiles, two steps, a box of a and one of b
/// @expect bytes_per_lane.shared.async (128 + 64) * 128 / 2 = 12288
/// @expect loads_per_output.b 256 * 128 / 16 / (128 * 128) = 0.125, 16 elements at a time, once
/// @expect bytes_per_lane.c.store 8, two floats: FP8 results would be too coarse
/// **Costs.** 99 to 198 KB of shared memory per block; a workspace as large as a and b. Twice as
/// many accumulators as in half precision: tiles are half as wide. A misaligned a is copied, too.
/// Not supported: other types, all but compute capability 9.0, tile maps with parts of tiles.
/// **Try.** Add the accumulators of every second stage only. Which tests notice, and from which K
/// on?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/fp8_operands.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks per SM, for small GEMMs.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Wider ones would have more sums than registers.

/// Grid: <= places.count; block kWgmmaThreads. @param scale of the accumulators
template <class Shape>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_fp8_wgmma(const __grid_constant__ TiledSource<Shape> source, WgmmaWork work,
                   WgmmaPlaces places, float scale, RowMajor<Shape> result) {
  static_assert(Shape::kRowTiles == 1, "64 rows for each consumer");
  // full: the stage has arrived; empty: all eight consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
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

  const int consumer = thread / 128;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::N / 2], part[Shape::N / 2];  // of the tile, of a step
#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) sums[j] = 0.0f;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kBytesStep);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kBytesStep; k += 32) {
        // Descriptors count in units of 16 bytes.
        ptx::wgmma_m64k32_e4m3<Shape::N>(part, a_at + k / 16, b_at + k / 16, k > 0);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[j] += part[j];
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) sums[j] *= scale;

    store_rows(result, item, item.m * Shape::M + consumer * kRows, sums);
  }
}

/// The tiles of a GEMM with this shape, walked down 2048 columns.
template <class Shape>
WgmmaWork work_of_bytes(const GemmProblem& gemm) {
  WgmmaWork work = work_of<Shape>(gemm, kBytesStep);
  work.group = 2048 / Shape::N;
  return work;
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Medium, Narrow>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_bytes(gemm)) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  with_shape(gemm, [&]<class Shape>(Shape) {
    const TiledSource<Shape> source = tiled_bytes<Shape>(gemm, arrays, context);
    const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
    const WgmmaWork work = work_of_bytes<Shape>(gemm);
    const WgmmaPlaces places(work);
    launch(gemm_fp8_wgmma<Shape>,
           {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads), Shape::kSharedBytes},
           source, work, places, gemm.scale(), rows_of_c<Shape>(gemm, arrays.c));
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return bytes_in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> fp8_wgmma = {
    .supports = supports,
    .workspace_bytes = bytes_of_copies,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
