/// @file taller_tiles.cu
/// @brief Taller FP8 tiles: a consumer computes two blocks of rows with one set of stage
/// accumulators.
///
/// - Before: wgmma.cu
/// - After: three_consumers.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Tiles of 128 x 128 need more bandwidth than the L2 cache has, and taller tiles
/// have more accumulators. But only the totals of a tile must be kept; the accumulators of a stage
/// are free after they have been added. So a consumer has two blocks of 64 rows, computes one after
/// the other, and uses the same registers for the accumulators of a stage:
///
///     consumer 0   rows 0: wgmma   add to sums[0]    rows 64: wgmma   add to sums[1]
///     consumer 1   ...             rows 128: wgmma   add to sums[0]   rows 192: wgmma   ...
///
/// While one consumer adds, the wgmma of the other run. A thread has 64 + 128 accumulators, more
/// than the 168 registers at launch. `setmaxnreg` reallocates them per warpgroup, as in
/// setmaxnreg.cu: the producers keep 40, and a consumer gets 232.
///
/// **Expect.** A step of a tile of 256 x 128 loads 48 KB for 1024 cycles of the tensor cores: 48
/// bytes per cycle and SM, where 128 x 128 needs 64 and the L2 cache delivers about 34. The loop of
/// a step has 8 QGMMA and 128 FADD among fewer than 200 instructions, without spills. Predicted on
/// an H200: 850 us at 8192, 120 us at 4096; the transposition of b takes 35 us and 9 us of these.
/// @expect on --m 512 --n 512 --k 256 --dtype fp8
/// @expect requests.shared.async 8 * 2 * (1 + 1) = 32, eight tiles where 128 x 128 has sixteen
/// @expect bytes_per_lane.shared.async (256 + 128) * 128 / 2 = 24576
/// @expect bytes_per_output.shared.async 256 * (1 / 128 + 1 / 256) = 3, and not 256 * 2 / 128 = 4
/// **Costs.** 193 KB of shared memory, so one block per SM; 96 idle threads. There are fewer tiles:
/// 2048 at 8192 are 16 waves of 132 SMs, where 15.5 would do. Not supported: as before.
/// **Try.** Give a consumer two blocks of 128 columns instead of rows, in tiles of 128 x 256. How
/// do the loaded bytes change, and those that wgmma reads from shared memory?
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

using Narrow = WgmmaShape<128, 64, 8, 1>;   ///< For small GEMMs: tiles for more of the SMs.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Likewise.
using Large = WgmmaShape<256, 128, 4, 1>;   ///< Loads 3/4 of Medium's bytes.

/// Grid: <= places.count; block kBlockThreads. @param scale of the accumulators
template <class Shape>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    gemm_fp8_taller_tiles(const __grid_constant__ TiledSource<Shape> source, WgmmaWork work,
                          WgmmaPlaces places, float scale, RowMajor<Shape> result) {
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
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one thread continues
    if (thread > kConsumerThreads) return;
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

  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];  // of the tile
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kBytesStep);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; ++i) {
        float part[Shape::N / 2];  // of a step, for 64 rows: the next ones take the same registers
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kBytesStep; k += 32) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k32_e4m3<Shape::N>(part, a_at + (i * 64 * kBytesStep + k) / 16,
                                           b_at + k / 16, k > 0);
        }
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<0>();
        if (i == Shape::kRowTiles - 1 && lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
        for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] += part[j];
      }
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }

#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] *= scale;
      store_rows(result, item, item.m * Shape::M + consumer * kRows + i * 64, sums[i]);
    }
  }
}

/// The tiles of a GEMM with this shape, walked down 1024 columns.
template <class Shape>
WgmmaWork work_of_bytes(const GemmProblem& gemm) {
  WgmmaWork work = work_of<Shape>(gemm, kBytesStep);
  work.group = 1024 / Shape::N;
  return work;
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
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
    launch(gemm_fp8_taller_tiles<Shape>,
           {dim3(blocks_for(places.count, 1, resident)), dim3(kBlockThreads), Shape::kSharedBytes},
           source, work, places, gemm.scale(), rows_of_c<Shape>(gemm, arrays.c));
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return bytes_in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> fp8_taller_tiles = {
    .supports = supports,
    .workspace_bytes = bytes_of_copies,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
