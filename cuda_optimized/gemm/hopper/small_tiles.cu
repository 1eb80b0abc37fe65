/// @file small_tiles.cu
/// @brief Small tiles and a short prologue: tiles of 64 rows for one consumer speed up small GEMMs.
///
/// - Before: fused_epilogue.cu
/// - After: overlapped_epilogue.cu, split_k_tail.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A GEMM of 1024 x 1024 x 1024 has 16 steps of k, and prologue and epilogue take as
/// much time as these steps. The coordinates of a tile took five 64-bit divisions, each of a
/// hundred dependent instructions, before the first load. All of these values fit in 32 bits: with
/// 2^32 tiles, c would have 70 TB. An epilogue that the problem does not use is compiled out.
///
/// Two consumers with 64 rows each read all columns of b twice; one consumer, with a tile half as
/// high and twice as wide, reads them once, and keeps the tensor cores busy, as in
/// hopper/ping_pong.cu:
///
///     tile       wgmma of a step      they read from shared memory
///     128 x 64   2 * 4 of 64 x 64     8 * (2 + 2) = 32 KB
///     64 x 128   4 of 64 x 128        4 * (2 + 4) = 24 KB
///
/// **Expect.** A scratch program with one change each took 0.4 us less by the first one and 0.3 us
/// less by the second. Predicted on an H200: 5.2 us at 1024, where fused_epilogue.cu takes 6.0 us;
/// at 2048 and 4096, whose tiles do not change, 1.0 us and 4 us less than it.
/// @expect on --m 640 --n 128 --k 8 --dtype bf16
/// @expect requests.shared.async 10 * (1 + 2) = 30, a box of a and two of b, before 10 * (1 + 1)
/// @expect bytes_per_lane.shared.async 8192, all boxes have 64 rows
/// @expect blocks 8, as before, for 10 tiles
/// **Costs.** Where c has up to 64 columns, half of such a tile would be empty: there, tiles stay
/// 128 x 64. Not supported: as before.
/// **Try.** Tiles of 64 x 256 have half as many blocks. From which size on are they faster?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = TallShape<64, 7>;   ///< Where c has no more columns.
using Low = LowShape<128, 7>;      ///< For small GEMMs: tiles for more of the SMs.
using Medium = TallShape<128, 6>;  ///< Likewise.
using Large = TallShape<256, 4>;   ///< Loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, and Result accordingly. Grid: <= places.count; block
/// kThreads<Shape>.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kThreads<Shape>, Shape::kBlocks)
    gemm_hopper_small_tiles(const __grid_constant__ Source source, WgmmaWork work,
                            WgmmaPlaces places, Epilogue<Shape> epilogue,
                            const __grid_constant__ Result result) {
  // full: the stage has arrived; empty: all consumers' warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kMultiply<Shape> / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kMultiply<Shape>) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kMultiply<Shape> + (Source::kWholeWarp ? 32 : 1)) return;
    for (unsigned index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!whole_item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the previous phase of the stage; in phase 0, at once.
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

  // Waits until the producers have released theirs.
  ptx::setmaxnreg_inc<Shape::kRegistersToMultiply>();

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  const OperandDescriptor a(
      ptx::wgmma_descriptor(stages + consumer * Shape::kBytesA / Shape::kWarpgroups));
  const OperandDescriptor b(ptx::wgmma_row_major_descriptor(stages + Shape::kBytesA, kPieceBytes));
  for (unsigned index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!whole_item_at(work, places, index, &item)) continue;
    float bias[Shape::N / 32], sums[Shape::kRowTiles][Shape::N / 2];
    if (epilogue.asked()) epilogue.load(item, bias);
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const int begin = stage * Shape::kStageBytes;
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Along a row of a, from row to row of b.
          wgmma_m64k16<Shape::N, T>(sums[i], a.at(begin + (i * 64 * kHalfStep + k) * 2),
                                    b.at(begin + k * kHalfColumns * 2));
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

    if (epilogue.asked()) epilogue.finish(bias, sums);
    result.store(item, consumer, sums, staging, box);
  }
  result.finish();
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Epilogue<Shape>& epilogue,
                  const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_hopper_small_tiles<Shape, T, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kThreads<Shape>),
          Shape::kSharedBytes + kStagingBytes},
         source, work, places, epilogue, result);
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  if (gemm.N <= Narrow::N) return with_shape_of<Large, Medium, Narrow>(gemm, body);
  return with_shape_of<Large, Medium, Low>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_steps(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) {
      const Epilogue<Shape> epilogue = {arrays.bias, gemm.N, gemm.activation};
      with_halves<Shape, Shape, T>(
          gemm, arrays.a, arrays.b, arrays.c, [&](const auto& source, const auto& result) {
            launch_wgmma<Shape, T>(source, work_of<Shape>(gemm, kHalfStep), epilogue, result);
          });
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> hopper_small_tiles = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
