/// @file ping_pong.cu
/// @brief Ping-pong schedule: one consumer warpgroup stores its tile while the other one
/// multiplies.
///
/// - Before: clusters.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** So far both consumers compute one tile together: while they wait for the last
/// wgmma, round and store, the tensor cores are idle. But one warpgroup alone can keep them busy.
/// So each consumer has tiles of its own, of 128 x 128, and they alternate:
///
///     consumer 0   multiply | store    | multiply | store           the producer loads the stages
///     consumer 1            | multiply | store    | multiply ...    of one tile after the other
///
/// A barrier's parity distinguishes its present phase from the previous one only. If the ring has
/// fewer stages than a tile has steps, a consumer that waited for its first stage during the
/// other's tile could take a phase of an earlier pass through the ring for its own. So it waits at
/// a barrier `turn` until the other one has its last stage; then it is at most one phase early.
///
/// **Expect.** A tile of 128 x 256 takes 0.6 us per 64 steps of k, and 1.3 us from its last wgmma
/// to the first of the next tile: with K = 1024 12 % of the time, with 512 20 %, with 4096 3 %. It
/// can be hidden at the price of smaller tiles: an SM loads 64 bytes per cycle instead of 48, of
/// which 48 come from the L2 cache, as b is shared. Predicted on an H200: M = N = 8192, K = 1024 12
/// % less time than clusters.cu; no gain at 4096, where power is the limit.
/// @expect on --m 1024 --n 256 --k 64 --dtype bf16 --bias
/// @expect requests.shared.async 16 * (1 + 2) = 48, a box of a and two of b for each tile
/// @expect bytes_per_output.shared.async (16384 + 2 * 4096) / (128 * 128) = 1.5, before 1
/// @expect loads_per_output.bias 4 * 128 / (128 * 128) = 0.03125, by the warps of one consumer
/// **Costs.** Tiles are half as large, and load as many more bytes. Not supported: as before.
/// **Try.** Leave out `turn`. From which K on is the result wrong, and why from there?
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

/// A tile of 128 rows, all of them one consumer's.
template <int kN, int kStages>
struct WholeTile : WgmmaShape<128, kN, kStages, 1> {
  static constexpr int kRowTiles = 2;  ///< wgmma tiles of a consumer
};
using Narrow = WholeTile<64, 8>;   ///< For small GEMMs: tiles for more of the SMs.
using Medium = WholeTile<128, 6>;  ///< As many accumulators as fit into a thread's registers.

/// Source: SharedHalves or LoneHalves, and Result accordingly. Grid: <= places.count clusters;
/// block kBlockThreads.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    gemm_hopper_ping_pong(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                          Epilogue<Shape> epilogue, const __grid_constant__ Result result) {
  constexpr unsigned kCluster = Source::kCluster;
  // full: the stage has arrived; empty: the four warps in each block that it is for have read it;
  // turn: the other consumer has its last stage.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages], turn[kConsumers];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kCluster * 128 / 32);
    }
    for (int i = 0; i < kConsumers; ++i) ptx::mbarrier_init(&turn[i], 128 / 32);
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

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  // One lane for each block of the cluster: all of them write the stage that this warp has read.
  const auto let_go = [&](int last) {
    if (lane < Source::kCluster)
      ptx::mbarrier_arrive_relaxed(ptx::mapa(&empty[last], static_cast<unsigned>(lane)));
  };
  bool mine = consumer == 1;                             // consumer of the previous tile
  unsigned turns = static_cast<unsigned>(consumer) ^ 1;  // modulo 2; consumer 0 has the first one
  const OperandDescriptor a(ptx::wgmma_descriptor(stages));
  const OperandDescriptor b(ptx::wgmma_row_major_descriptor(stages + Shape::kBytesA, kPieceBytes));
  for (std::int64_t index = first; index < places.count; index += gridDim.x / kCluster) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    mine = !mine;  // the consumers have a block's tiles in turns
    if (!mine) {   // skips the other consumer's stages
      stage += work.steps;
      phase ^= static_cast<unsigned>(stage / Shape::kStages) & 1;
      stage %= Shape::kStages;
      continue;
    }
    item.m = item.m * kCluster + rank;
    float bias[Shape::N / 32], sums[Shape::kRowTiles][Shape::N / 2];
    epilogue.load(item, bias);
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    ptx::mbarrier_wait(&turn[consumer], turns);
    turns ^= 1;
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
    if (lane == 0) ptx::mbarrier_arrive(&turn[consumer ^ 1]);
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0) let_go(last_stage);

    epilogue.finish(bias, sums);
    item.m -= consumer;  // store() would begin a tile's second half for consumer 1
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
  launch_in_clusters(kCluster, gemm_hopper_ping_pong<Shape, T, Source, Result>,
                     {dim3(kCluster * blocks_for(places.count, 1, resident)), dim3(kBlockThreads),
                      Shape::kSharedBytes + kStagingBytes},
                     source, work, places, epilogue, result);
}

/// Calls body(Shape) for the larger shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Medium, Narrow>(gemm, body);
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

extern const Implementation<GemmArrays> hopper_ping_pong = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
