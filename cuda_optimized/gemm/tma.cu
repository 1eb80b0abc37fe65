/// @file tma.cu
/// @brief TMA: one thread issues copies of whole swizzled tiles; the products are those of
/// ldmatrix.cu.
///
/// - Before: ldmatrix.cu
/// - After: wgmma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** In ldmatrix.cu, all threads compute addresses and copy pieces of 16 bytes. TMA
/// (Tensor Memory Accelerator) copies a box of a matrix for one instruction of one thread. A tensor
/// map describes the matrix and the box. TMA applies the same XOR swizzle to rows of 128 bytes, and
/// writes zeros past the edges, so that edges need no tests. A stage is a box of a and, for each
/// panel of 64 columns, one of b:
///
///     a [M][K]   box 128 x 64      full[stage], an mbarrier: its phase completes after one arrival
///     b [K][N]   boxes 64 x 64     for each box, and after all bytes that the arrivals announced
///
/// Threads wait for a phase by its parity, which changes whenever the ring starts over. The block
/// still needs its barrier: it separates the last loads of a stage from the boxes that overwrite
/// it.
///
/// **Expect.** No addresses, no tests, and no copies in the queue of the loads: two blocks of 128 x
/// 128 an SM, of which one multiplies while the other waits. Predicted on an H200: 5 % less time
/// than ldmatrix.cu at 4096 (297 us).
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, two tiles, two steps, a box of a and one of b
/// @expect lanes_per_request.shared.async 1, one thread issues a box
/// @expect bytes_per_lane.shared.async (128 + 64) * 64 * 2 / 2 = 12288
/// **Costs.** Where rows of a or b are not aligned to 16 bytes, a warp copies element by element,
/// which is slow. Not supported: GPUs before compute capability 9.0, and as before.
/// **Try.** Let one thread issue all boxes of a stage. Who waits for its warp, and where?
#include "core/cuda/needs.hpp"
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

constexpr int kMmaK = 16;  ///< Of k in an instruction.

/// The sizes of a kernel: a block's tile of c and a warp's, stages, and blocks per SM.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages_, int kBlocks_>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kBytesA = kM * kHalfStep * 2;                          ///< of a stage
  static constexpr int kStageBytes = kBytesA + kHalfStep * kN * 2;            ///< a, then b
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kAtom;  ///< and to align them
};
using Large = Shape<128, 128, 64, 64, 3, 2>;
using Small = Shape<128, 64, 64, 32, 3, 3>;  ///< Where large tiles would leave SMs without work.

/// The fragments of a warp for 16 steps of k.
template <class S>
struct Fragments {
  std::uint32_t a[S::WarpM / 16][4], b[S::WarpN / 8][2];

  /// Steps k ... k + 15 of a stage. This lane's first row of a is at stage[a_at], of b at
  /// stage[b_at]. The swizzle is an exclusive or, and so is the way to other pieces of a row; rows
  /// that are a multiple of 8 away are permuted alike.
  template <class T>
  __device__ void load(const T* stage, int a_at, int b_at, int k) {
#pragma unroll
    for (int i = 0; i < S::WarpM / 16; ++i) {
      ptx::ldmatrix_x4(a[i], stage + (a_at ^ k) + 16 * i * kHalfStep);
    }
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; j += 2) {
      std::uint32_t two[4];  // fragments, of 8 columns each
      ptx::ldmatrix_x4_trans(two, stage + (b_at ^ 8 * j) + k * kHalfColumns);
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
  }
};

/// The tensor maps of a [M][K] and b [K][N].
struct Maps {
  static constexpr bool kWholeWarp = false;  ///< As of GatheredHalves, which takes their place.
  CUtensorMap a, b;
};

/// Source: Maps, or GatheredHalves where TMA cannot read a or b: then a warp copies element by
/// element. Grid: the map's. Block (S::kThreads).
template <class S, class T, class Source>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    gemm_tma(const __grid_constant__ Source source, TileMapProblem map, RowsOfC<T> c) {
  __shared__ std::uint64_t full[S::kStages];  // the stage's boxes have arrived
  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block
  const int m0 = tile.m * S::M, n0 = tile.n * S::N;
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;  // the swizzle is of addresses
  const auto stage_at = [&](int stage) {
    return reinterpret_cast<const T*>(stages + stage * S::kStageBytes);
  };
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);

  constexpr int kBoxes = 1 + S::N / kHalfColumns;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) {
      ptx::mbarrier_init(&full[i], Source::kWholeWarp ? 1 : kBoxes);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const auto load = [&](int step, int stage) {
    char* const a_tile = stages + stage * S::kStageBytes;
    char* const b_tile = a_tile + S::kBytesA;
    if (step >= map.k_steps) return;
    if constexpr (Source::kWholeWarp) {
      if (warp == 0)
        source.load(source.at({tile.m, tile.n, 0, step, 0}), a_tile, b_tile, &full[stage]);
    } else if (warp < kBoxes && lane == 0) {
      // A warp whose thread issues five boxes would keep the others waiting: each issues one. A
      // barrier counts the bytes of whole boxes, also the zeros past the edges.
      ptx::mbarrier_arrive_expect_tx(&full[stage], warp == 0 ? S::kBytesA : kPieceBytes);
      if (warp == 0) {
        ptx::tma_load<2>(a_tile, &source.a, &full[stage], {step * kHalfStep, m0});
      } else {
        ptx::tma_load<2>(b_tile + (warp - 1) * kPieceBytes, &source.b, &full[stage],
                         {n0 + (warp - 1) * kHalfColumns, step * kHalfStep});
      }
    }
  };

  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int a_from = swizzled_half(warp_m + lane % 16, lane / 16 * 8);
  const int b_from = S::kBytesA / 2 + warp_n / kHalfColumns * (kPieceBytes / 2) +
                     swizzled_half(lane % 16, warp_n % kHalfColumns + lane / 16 * 8);
  Fragments<S> fragments[2];  // of this k16, and of the next one
  float sums[S::WarpM / 16][S::WarpN / 8][4] = {};

  for (int stage = 0; stage < S::kStages - 1; ++stage) load(stage, stage);
  int read = 0, write = S::kStages - 1;  // stages
  unsigned parity = 0;                   // of the phase that stage `read` is in
  ptx::mbarrier_wait(&full[0], parity);
  fragments[0].load(stage_at(0), a_from, b_from, 0);
#pragma unroll 1
  for (int step = 0; step < map.k_steps; ++step) {
#pragma unroll
    for (int k = 0; k < kHalfStep; k += kMmaK) {
      const int now = k / kMmaK % 2;
      if (k + kMmaK == kHalfStep) {
        if (++read == S::kStages) {
          read = 0;
          parity ^= 1;
        }
        if (step + 1 < map.k_steps) ptx::mbarrier_wait(&full[read], parity);
        __syncthreads();  // separates the loads of this stage from the boxes that will overwrite it
      }
      // After the last step these are of a stage without data: no product contains them.
      fragments[1 - now].load(stage_at(read), a_from, b_from, (k + kMmaK) % kHalfStep);
      if (k == 0) load(step + S::kStages - 1, write);  // into the stage of the previous step
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          mma_m16n8k16<T>(sums[i][j], fragments[now].a[i], fragments[now].b[j]);
        }
      }
    }
    write = write + 1 == S::kStages ? 0 : write + 1;
  }

#pragma unroll
  for (int i = 0; i < S::WarpM / 16; ++i) {
    const std::int64_t m = std::int64_t{m0} + warp_m + 16 * i + lane / 4;
    T* const rows[2] = {c.row(m), c.row(m + 8)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto pair = [&](int j) {
        return float2{sums[i][j][2 * half], sums[i][j][2 * half + 1]};
      };
#pragma unroll
      for (int j = 0; j < S::WarpN / 8; j += 4) {
        c.store(rows[half], std::int64_t{n0} + warp_n + 8 * j, pair(j), pair(j + 1), pair(j + 2),
                pair(j + 3));
      }
    }
  }
}

OutputTile tile(const GemmProblem& gemm) {
  return with_less_work<Large, Small>(gemm, []<class S>(S) { return OutputTile{S::M, S::N}; });
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_not("sm_90a")) return why;
  return tile_map::why_no_whole_tiles(tiles_in_groups(gemm, tile(gemm)));
}

template <class S, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T *a = arrays.a, *b = arrays.b;
  const TileMapProblem tiles = tiles_in_groups(gemm, {S::M, S::N});
  const LaunchConfig config = {tile_map::launch_grid(tiles), S::kThreads, S::kSharedBytes};
  const RowsOfC<T> c = rows_of_c<T>(gemm, arrays.c);
  if (rows_in_eights(gemm) && begin_at_16_bytes(a, b)) {
    const Maps maps = {
        tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, S::M}}, a),
        tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
    launch(gemm_tma<S, T, Maps>, config, maps, tiles, c);
  } else {
    using Gathered = GatheredHalves<S, T>;
    launch(gemm_tma<S, T, Gathered>, config, Gathered{a, b, gemm}, tiles, c);
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_less_work<Large, Small>(gemm, [&]<class S>(S) { run_with<S, T>(gemm, arrays); });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_less_work<Large, Small>(gemm, [&]<class S>(S) { return in_words<S>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> tma = {
    .supports = supports,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
