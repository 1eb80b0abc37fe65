/// @file warp_specialized.cu
/// @brief Warp specialization: a producer warp loads, two consumer warpgroups multiply.
///
/// - Before: wgmma.cu
/// - After: persistent.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** In wgmma.cu both warpgroups meet at a barrier in each step, and the thread that
/// loads first waits for its own products. Here the roles are separate (warp specialization): a
/// producer warp only loads, two consumer warpgroups only multiply. Two mbarriers for each stage
/// connect them:
///
///     full[stage]    arrives: TMA, with the last byte      waits: the consumers, before wgmma
///     empty[stage]   arrive: all warps of the consumers,   waits: the producer, before it loads
///                    when wgmma has read the stage         into the stage again
///
/// The producer runs ahead as far as the ring allows, and a consumer does not wait for the other
/// one. The main loop of a consumer contains only waits and `wgmma`.
///
/// **Expect.** With long sums nothing is gained yet: in wgmma.cu the barrier and the loads are
/// hidden behind a group of products. With few steps, the first stages arrive while the consumers
/// begin. Predicted on an H200: as wgmma.cu at 4096 (200 us), 5 % less time at 1024. The
/// separate producer pays in the next rung, where it runs ahead into the next tile.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, as before
/// @expect bytes_per_lane.shared.async (128 + 64) * 64 * 2 / 2 = 12288
/// @expect barriers_per_block 1, after the mbarriers are initialised
/// **Costs.** One warp more. Not supported: as before.
/// **Try.** Initialise `empty` with 4 arrivals. Which consumer does the producer then overtake?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks per SM, for small GEMMs.
using Medium = WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block per SM; loads 3/4 of Medium's bytes.

/// Source: TiledHalves, boxes that TMA loads, or GatheredHalves. Grid: the map's. Block
/// (kWgmmaThreads): two consumer warpgroups, each of which computes 64 rows of the tile, and the
/// producer.
template <class Shape, class T, class Source>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_warp_specialized(const __grid_constant__ Source source, TileMapProblem map, RowsOfC<T> c) {
  // full: the stage has arrived; empty: both consumers have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
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
    // The producer. It runs ahead of the consumers by as many stages as there are.
    if (lane != 0 && !Source::kWholeWarp) return;
    auto cursor = source.at({tile.m, tile.n, 0, 0, map.k_steps});
    for (int step = 0; step < map.k_steps; ++step) {
      // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
      ptx::mbarrier_wait(&empty[stage], phase ^ 1);
      char* a = stages + stage * Shape::kStageBytes;
      source.load(cursor, a, a + Shape::kBytesA, &full[stage]);
      source.advance(cursor);
      if (++stage == Shape::kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
    return;
  }

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  float sums[Shape::N / 2] = {};
  int last_stage = -1;
  for (int step = 0; step < map.k_steps; ++step) {
    ptx::mbarrier_wait(&full[stage], phase);
    const char* a = stages + stage * Shape::kStageBytes;
    const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
    const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, kPieceBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16) {
      // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
      wgmma_m64k16<Shape::N, T>(sums, a_at + k / 8, b_at + k * kHalfColumns / 8);
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

  // A warp has 16 rows, and a lane has pairs of columns in two of them, as of mma.sync.
  const std::int64_t m = std::int64_t{tile.m} * Shape::M + consumer * kRows + warp * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    T* const row = c.row(m + 8 * half);
    const auto pair = [&](int j) {
      return float2{sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]};
    };
#pragma unroll
    for (int j = 0; j < Shape::N / 8; j += 4) {
      const std::int64_t n = std::int64_t{tile.n} * Shape::N + 8 * j;
      c.store(row, n, pair(j), pair(j + 1), pair(j + 2), pair(j + 3));
    }
  }
}

/// Calls body(Shape) for the largest shape that has tiles for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
}

OutputTile tile(const GemmProblem& gemm) {
  return with_shape(gemm, []<class Shape>(Shape) { return OutputTile{Shape::M, Shape::N}; });
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return tile_map::why_no_whole_tiles(tiles_in_groups(gemm, tile(gemm)));
}

template <class Shape, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T *a = arrays.a, *b = arrays.b;
  const TileMapProblem tiles = tiles_in_groups(gemm, {Shape::M, Shape::N});
  const LaunchConfig config = {tile_map::launch_grid(tiles), kWgmmaThreads, Shape::kSharedBytes};
  const RowsOfC<T> c = rows_of_c<T>(gemm, arrays.c);
  if (rows_in_eights(gemm) && begin_at_16_bytes(a, b)) {
    const TiledHalves<Shape> source = {
        tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
        tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
    launch(gemm_warp_specialized<Shape, T, TiledHalves<Shape>>, config, source, tiles, c);
  } else {
    using Gathered = GatheredHalves<Shape, T>;
    launch(gemm_warp_specialized<Shape, T, Gathered>, config, Gathered{a, b, gemm}, tiles, c);
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape, T>(gemm, arrays); });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> warp_specialized = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
