/// @file tma_store.cu
/// @brief TMA store: accumulators pass through staging buffers, from which TMA writes c.
///
/// - Before: persistent.cu
/// - After: setmaxnreg.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** In persistent.cu, the threads store c: 16 bytes in each of 8 rows per instruction,
/// half a sector each, after address arithmetic. Here a consumer rounds its accumulators into a
/// staging buffer of 64 x 64 in shared memory, and one thread starts a TMA store of it. Meanwhile
/// the consumer fills its second buffer, or begins the next tile:
///
///     128 threads      fill buffer 0 | fill buffer 1 | fill buffer 0 ... | next tile
///     TMA                    | buffer 0 -> c  | buffer 1 -> c ...        | last buffers
///
/// Only thread 0, which commits the stores, can wait for them. It waits until TMA has *read* the
/// buffer of two stores ago; a barrier; all write; a proxy fence; a barrier; thread 0 stores.
///
/// **Expect.** A tile of 128 x 256 is 64 KB of c. A buffer's rows are whole sectors, and the
/// 128-byte swizzle spreads the pairs over the banks. Predicted on an H200: 1.5 to 2.5 % less time
/// than persistent.cu at 4096 (201 us) and 8192 (1590 us), more for small K.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect bytes_per_lane.shared.store 4, two accumulators, into a box
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, the loads are the same
/// @expect barriers_per_block 1, named barriers are not counted
/// **Costs.** 32 KB of shared memory per block: Medium has one stage fewer. Where TMA cannot access
/// a, b or c, threads copy and store. Not supported: as before.
/// **Try.** Omit the first barrier of store_piece(). What does the emulator report?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 3, 2>;   ///< Two blocks per SM, for small GEMMs.
using Medium = WgmmaShape<128, 128, 2, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block per SM; loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, and Result accordingly. Grid: <= places.count; block
/// kWgmmaThreads.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_tma_store(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                   const __grid_constant__ Result result) {
  // Phases of full complete when a stage has arrived, those of empty when all eight consumer warps
  // have read it.
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
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by up to kStages, also into the next tile, while
    // they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in the first one, at
        // once.
        ptx::mbarrier_wait(&empty[stage], phase ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, a, a + Shape::kBytesA, &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128;
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
      const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, kPieceBytes);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
          wgmma_m64k16<Shape::N, T>(sums[i], a_at + (i * 64 * kHalfStep + k) / 8,
                                    b_at + k * kHalfColumns / 8);
        }
      }
      ptx::wgmma_commit_group();
      // Waits for the products of the previous step: TMA may overwrite the stage that they read.
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

    // for (rows and columns of the consumer) c[row][column] = rounded(sums[...]), through `staging`
    result.store(item, consumer, sums, staging, box);
  }
  result.finish();
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_tma_store<Shape, T, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads),
          Shape::kSharedBytes + kStagingBytes},
         source, work, places, result);
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) {
      with_halves<Shape, Shape, T>(
          gemm, arrays.a, arrays.b, arrays.c, [&](const auto& source, const auto& result) {
            launch_wgmma<Shape, T>(source, work_of<Shape>(gemm, kHalfStep), result);
          });
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> tma_store = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
