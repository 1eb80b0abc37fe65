/// @file clusters.cu
/// @brief Multicast in clusters: two blocks share a tile of b, and each loads half of it for both.
///
/// - Before: fused_epilogue.cu
/// - After: hopper/ping_pong.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Blocks whose tiles lie below each other need the same columns of b. The two blocks
/// of a *cluster* run at the same time on neighbouring SMs, and TMA multicast writes what it reads
/// once to the same offset in the shared memory of both:
///
///     block 0   128 rows of a, its own | rows 0 to 31 of b  -> blocks 0 and 1
///     block 1   128 rows of a, its own | rows 32 to 63      -> blocks 0 and 1
///
/// A block's `full` barrier counts all bytes of its stage, from either block. A stage is `empty`
/// when the warps of *both* blocks have read it: a warp arrives at its own barrier and, at an
/// address that `mapa` computes, at the other block's. Cluster barriers separate the initialisation
/// of the barriers from their use, and the last arrivals from the end of a block.
///
/// **Expect.** A step of 128 x 256 loads 32 KB, not 48 KB, for 1024 cycles: 32 bytes per cycle,
/// where the L2 cache delivers about 34. Predicted on an H200: 181 us at 4096, 1475 us at 8192. M =
/// 131072, N = K = 256: 134 MB of loads, before 201 MB: 36 us, before 44 us.
/// @expect on --m 1024 --n 256 --k 64 --dtype bf16
/// @expect blocks 8, four clusters, for four pairs of tiles of 128 x 256
/// @expect bytes_per_output.shared.async (16384 + 4 * 4096) / (128 * 256) = 1, before 1.5
/// @expect bytes_per_lane.shared.async (16384 + 4 * 4096) / 5 = 6553.6, boxes of half the rows of b
/// @expect barriers_per_block 0, those of a cluster are not counted
/// **Costs.** Blocks wait for each other. An odd number of tiles leaves one without work. Where TMA
/// cannot access a, b or c, there are no clusters. Not supported: as before.
/// **Try.** Leave out the last cluster barrier. What does the emulator report, and what does a GPU?
#include "core/cuda/cluster.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
/// a [M][K] and b [K][N] by TMA: the block's own rows of a, and the block's part of the cluster's
/// tile of b, which TMA writes to the shared memory of all blocks (multicast).
template <class Shape>
struct SharedHalves : TiledHalves<Shape> {
  static constexpr int kCluster = 2;                  ///< Blocks of a cluster.
  static constexpr int kPart = kHalfStep / kCluster;  ///< Rows of a stage's b that a block loads.

  /// Loads the block's own rows of a and its part of b of the stage at the cursor.
  __device__ void load(const typename TiledHalves<Shape>::Cursor& cursor, char* a_tile,
                       char* b_tile, std::uint64_t* full) const {
    // The bytes of the whole stage. Those that the other block loads may arrive before this.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &this->a, full, {cursor.k, cursor.m});
    const int row = static_cast<int>(ptx::cluster_rank()) * kPart;
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load_multicast<2>(b_tile + i * kPieceBytes + row * kHalfColumns * 2, &this->b, full,
                                 {cursor.n + i * kHalfColumns, cursor.k + row},
                                 (1u << kCluster) - 1);
    }
  }
};

/// By a warp, for a block without a cluster.
template <class Shape, class T>
struct LoneHalves : GatheredHalves<Shape, T> {
  static constexpr int kCluster = 1;  ///< Blocks of a cluster.
};

namespace {

using Narrow = WgmmaShape<128, 64, 7, 1>;   ///< For small GEMMs: tiles for more of the SMs.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< Loads 3/4 of Medium's bytes.

/// Source: SharedHalves or LoneHalves, and Result accordingly. Grid: <= places.count clusters;
/// block kBlockThreads.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    gemm_clusters(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                  Epilogue<Shape> epilogue, const __grid_constant__ Result result) {
  constexpr unsigned kCluster = Source::kCluster;
  // full: the stage has arrived; empty: all eight consumer warps of each block have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kCluster * kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  // Separates the initialisation from all use of the barriers, by all blocks of the cluster.
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();

  const unsigned rank = ptx::cluster_rank(), first = blockIdx.x / kCluster;
  int stage = 0;
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kConsumerThreads + (Source::kWholeWarp ? 32 : 1)) return;
    for (std::int64_t index = first; index < places.count; index += gridDim.x / kCluster) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      item.m = item.m * kCluster + rank;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers of all blocks have read the previous phase of the stage; in
        // phase 0, at once.
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
  // One lane for each block of the cluster: all of them write the stage that this warp has read.
  const auto let_go = [&](int last) {
    if (lane < Source::kCluster)
      ptx::mbarrier_arrive_relaxed(ptx::mapa(&empty[last], static_cast<unsigned>(lane)));
  };
  const OperandDescriptor a(ptx::wgmma_descriptor(stages + consumer * Shape::kBytesA / kConsumers));
  const OperandDescriptor b(ptx::wgmma_row_major_descriptor(stages + Shape::kBytesA, kPieceBytes));
  for (std::int64_t index = first; index < places.count; index += gridDim.x / kCluster) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    item.m = item.m * kCluster + rank;
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
      if (last_stage >= 0) let_go(last_stage);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0) let_go(last_stage);

    // for (all accumulators) sum = activated(sum + bias[column])
    epilogue.finish(bias, sums);
    result.store(item, consumer, sums, staging, box);
  }
  result.finish();
  // Separates the other block's last arrivals at this block's barriers from the end of the block.
  // Producers have returned and do not count.
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
}

/// Launches as many clusters as are resident at the same time, but no more than there are items, of
/// a tile for each block.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Epilogue<Shape>& epilogue,
                  const Result& result) {
  constexpr int kCluster = Source::kCluster;
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks / kCluster;
  const WgmmaPlaces places(work);
  launch_in_clusters(kCluster, gemm_clusters<Shape, T, Source, Result>,
                     {dim3(kCluster * blocks_for(places.count, 1, resident)), dim3(kBlockThreads),
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
  // Of single tiles: pairs need no more places.
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

/// Calls body(source, result) for a problem's arrays: by TMA for clusters, or, where TMA cannot
/// read or write one of them, by a warp and the consumers of single blocks.
template <class Shape, class T, class Body>
void with_shared_halves(const GemmProblem& gemm, const T* a, const T* b, T* c, const Body& body) {
  if (!tma_takes(gemm, a, b, c)) {
    body(LoneHalves<Shape, T>{{a, b, gemm}}, plain_result<Shape>(gemm, c));
    return;
  }
  using Source = SharedHalves<Shape>;
  const Source source = {
      {tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
       tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, Source::kPart}}, b)}};
  body(source, boxed_result<Shape>(gemm, c));
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) {
      const Epilogue<Shape> epilogue = {arrays.bias, gemm.N, gemm.activation};
      with_shared_halves<Shape, T>(gemm, arrays.a, arrays.b, arrays.c,
                                   [&]<class Source>(const Source& source, const auto& result) {
                                     launch_wgmma<Shape, T>(
                                         source, work_of<Shape>(gemm, kHalfStep, Source::kCluster),
                                         epilogue, result);
                                   });
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return in_words<Shape>(gemm, rows_in_eights(gemm) ? ", in pairs" : "");
  });
}

}  // namespace

extern const Implementation<GemmArrays> clusters = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
