/// @file fused_epilogue.cu
/// @brief Fused epilogue: bias and ReLU are applied to accumulators in registers.
///
/// - Before: setmaxnreg.cu
/// - After: hopper/small_tiles.cu, clusters.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A layer of a network is c = relu(a b + bias). As kernels of their own, bias and
/// ReLU read and write all of c once more. Here they are the *epilogue* of the GEMM, applied before
/// the accumulators are rounded and stored:
///
///     GEMM, then an elementwise kernel    a, b -> c -> c     c crosses memory three times
///     GEMM with an epilogue               a, b, bias -> c    once
///
/// A thread's accumulators lie in N / 4 columns of the tile: their biases do not fit beside them. A
/// lane therefore loads the bias of one column of every 32 before the main loop, 8 registers at
/// N = 256. After it, a shuffle passes each bias to the lanes that need it: no shared memory and no
/// barrier.
///
/// **Expect.** 64 shuffles and 3 instructions for each of 128 accumulators: 900 cycles per tile.
/// Predicted on an H200: 183 us at 4096, where setmaxnreg.cu takes 181 us without an epilogue; an
/// elementwise kernel takes 12 us. M = 131072, N = K = 256: 40 us, and 32 us for such a kernel.
/// @expect on --m 640 --n 128 --k 8 --dtype bf16 --bias --activation relu
/// @expect loads_per_output.bias 8 * 64 / (128 * 64) = 0.0625, each of 8 warps loads it once a tile
/// @expect barriers_per_block 1, as before
/// @expect bytes_per_lane.shared.store 4, as before: rounded sums
/// **Costs.** 8 registers, also without a bias. Not supported: as before.
/// **Try.** Let the accumulators start at the bias. What is saved, and what happens later?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 7, 1>;   ///< For small GEMMs: tiles for more of the SMs.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< Loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, and Result accordingly. Grid: <= places.count; block
/// kBlockThreads.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    gemm_fused_epilogue(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                        Epilogue<Shape> epilogue, const __grid_constant__ Result result) {
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
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kConsumerThreads + (Source::kWholeWarp ? 32 : 1)) return;
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

  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  // From lane 0: the compiler then keeps it, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  const OperandDescriptor a(ptx::wgmma_descriptor(stages + consumer * Shape::kBytesA / kConsumers));
  const OperandDescriptor b(ptx::wgmma_row_major_descriptor(stages + Shape::kBytesA, kPieceBytes));
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float bias[Shape::N / 32], sums[Shape::kRowTiles][Shape::N / 2];
    epilogue.load(item, bias);
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

    // for (all accumulators) sum = activated(sum + bias[column])
    epilogue.finish(bias, sums);
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
  launch(gemm_fused_epilogue<Shape, T, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kBlockThreads),
          Shape::kSharedBytes + kStagingBytes},
         source, work, places, epilogue, result);
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
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

extern const Implementation<GemmArrays> fused_epilogue = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
