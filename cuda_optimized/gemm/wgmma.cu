/// @file wgmma.cu
/// @brief `wgmma`: a warpgroup's asynchronous instruction reads both operands from shared memory.
///
/// - Before: tma.cu
/// - After: warp_specialized.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** `mma.sync` takes its operands from registers, so that a warp loads fragments for
/// each k16. `wgmma` is an instruction of a warpgroup (four warps) that reads a [64][16] and b
/// [16][256] from shared memory itself. A descriptor gives the address of an operand, its swizzle,
/// and the distances between groups of rows and between panels. In half precision b may be
/// row-major:
///
///     a   rows of 128 bytes along k          the next k16 begins 32 bytes further
///     b   panels [64 of k][64 columns]       the next k16 begins 16 rows, 2048 bytes, further
///
/// `wgmma` runs asynchronously. The four of a stage are committed as a group, and the warpgroup
/// waits for the group before it: the tensor cores have work while it waits. Accumulators stay in
/// registers, 64 x 256 of c for each of two warpgroups.
///
/// **Expect.** A stage of a tile of 128 x 256 takes the tensor cores 1024 cycles, and its 48 KB the
/// L2 cache 1400. That allows 71 % of 990 TFLOP/s, and c is stored between tiles, when nothing is
/// multiplied. Predicted on an H200: 680 TFLOP/s at 4096 (202 us).
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect loads_per_output.shared 0, there are no fragments
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, as before
/// @expect barriers_per_block 1 + 128 / 64 = 3, one a step
/// **Costs.** 99 to 198 KB of shared memory. Not supported: all but compute capability 9.0.
/// **Try.** Let b's descriptor step by 32 bytes for 16 steps of k, as a's does. What does c hold?
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

/// Source: TiledHalves, boxes that TMA loads as in tma.cu, or GatheredHalves. Grid: the map's.
/// Block (kConsumerThreads), of which each warpgroup has 64 rows of the tile.
template <class S, class T, class Source>
__global__ void __launch_bounds__(kConsumerThreads, S::kBlocks)
    gemm_wgmma(const __grid_constant__ Source source, TileMapProblem map, RowsOfC<T> c) {
  __shared__ std::uint64_t full[S::kStages];
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;  // the swizzle is of addresses
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);

  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) ptx::mbarrier_init(&full[i], 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  auto cursor = source.at({tile.m, tile.n, 0, 0, map.k_steps});
  int steps_left = map.k_steps;  // that are not loaded yet
  const auto load = [&](int stage) {
    if (steps_left-- <= 0 || warp != 0 || (lane != 0 && !Source::kWholeWarp)) return;
    char* const a_tile = stages + stage * S::kStageBytes;
    source.load(cursor, a_tile, a_tile + S::kBytesA, &full[stage]);
    source.advance(cursor);
  };
  for (int stage = 0; stage < S::kStages - 1; ++stage) load(stage);

  float sums[S::N / 2] = {};
  int read = 0, write = S::kStages - 1;  // stages
  unsigned parity = 0;                   // of the phase that stage `read` is in
#pragma unroll 1
  for (int step = 0; step < map.k_steps; ++step) {
    ptx::mbarrier_wait(&full[read], parity);
    const char* const a_tile = stages + read * S::kStageBytes;
    const std::uint64_t a_at = ptx::wgmma_descriptor(a_tile + warp / 4 * 64 * kHalfStep * 2);
    const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a_tile + S::kBytesA, kPieceBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16) {
      // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
      wgmma_m64k16<S::N, T>(sums, a_at + k / 8, b_at + k * kHalfColumns / 8);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    // Now both warpgroups have read the stage of the previous step, and it may be overwritten.
    __syncthreads();
    load(write);
    write = write + 1 == S::kStages ? 0 : write + 1;
    if (++read == S::kStages) {
      read = 0;
      parity ^= 1;
    }
  }
  ptx::wgmma_wait_group<0>();

  // A warp has 16 rows, and a lane has pairs of columns in two of them, as of mma.sync.
  const std::int64_t m = std::int64_t{tile.m} * S::M + warp * 16 + lane / 4;
  T* const rows[2] = {c.row(m), c.row(m + 8)};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto pair = [&](int j) {
      return float2{sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]};
    };
#pragma unroll
    for (int j = 0; j < S::N / 8; j += 4) {
      const std::int64_t n = std::int64_t{tile.n} * S::N + 8 * j;
      c.store(rows[half], n, pair(j), pair(j + 1), pair(j + 2), pair(j + 3));
    }
  }
}

/// Calls body(Shape) for the largest shape that has tiles for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
}

OutputTile tile(const GemmProblem& gemm) {
  return with_shape(gemm, []<class S>(S) { return OutputTile{S::M, S::N}; });
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return tile_map::why_no_whole_tiles(tiles_in_groups(gemm, tile(gemm)));
}

template <class S, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T *a = arrays.a, *b = arrays.b;
  const TileMapProblem tiles = tiles_in_groups(gemm, {S::M, S::N});
  const LaunchConfig config = {tile_map::launch_grid(tiles), kConsumerThreads, S::kSharedBytes};
  const RowsOfC<T> c = rows_of_c<T>(gemm, arrays.c);
  if (rows_in_eights(gemm) && begin_at_16_bytes(a, b)) {
    const TiledHalves<S> source = {
        tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, S::M}}, a),
        tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
    launch(gemm_wgmma<S, T, TiledHalves<S>>, config, source, tiles, c);
  } else {
    using Gathered = GatheredHalves<S, T>;
    launch(gemm_wgmma<S, T, Gathered>, config, Gathered{a, b, gemm}, tiles, c);
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class S>(S) { run_with<S, T>(gemm, arrays); });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class S>(S) { return in_words<S>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> wgmma = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
