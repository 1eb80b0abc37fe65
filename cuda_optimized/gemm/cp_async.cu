/// @file cp_async.cu
/// @brief `cp.async` pipeline: several stages are copied asynchronously, without passing through
/// registers.
///
/// - Before: double_buffered.cu
/// - After: mma.cu, split_k.cu, tf32/mma.cu
/// - As a building block: shared/async_tiles.cuh (split_k and stream_k are made of it)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A prefetch into registers needs a second instruction that stores the data.
/// `cp.async` (Ampere and later) copies from global to shared memory asynchronously. A thread
/// starts the copies of a step, commits them as a group, and later waits until only the last few
/// groups are pending. The copies of several steps can be in flight, into a ring of stages:
///
///     stage 0   | copy 0      | compute 0 | copy 3    . . . . . . | compute 3
///     stage 1   |   copy 1  . . . . . . . | compute 1 | copy 4    . . . . .        time ->
///     stage 2   |                         | copy 2 . . . . . . .  | compute 2
///                             ^ before each step: wait for its group, one barrier,
///                               then start the copies of the step after the next
///
/// A copy cannot transpose, but it may be as small as 4 bytes: elements of a are copied one by one
/// into the transposed tile, rows of b in pieces of 16 bytes. Beyond K the copies write zeros.
///
/// **Expect.** For each thread and step of 16: 1024 multiply-adds, 64 float4 loads, 10 copies,
/// about 60 other instructions. Copies take no data registers. The register allocation of the
/// multiply-adds decides the last per cent. Predicted on an H200: 49 TFLOP/s at 4096 (2.8 ms).
/// @expect lanes.global.load 0, nothing passes through registers
/// @expect bytes_per_lane.b.async 16
/// @expect bytes_per_lane.a.async 4, on their way they are transposed
/// @expect barriers_per_block 64 / 16 = 4, one a step of 16
/// **Costs.** 50 KB of shared memory for three stages. Before sm_80 the copies are loads and
/// stores, one after the other. Not supported: as before.
/// **Try.** Leave cp_async_wait_group() out. On a GPU the result may well be right most of the
/// time. What does cuda_on_cpu report?
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kStages = 3;                   ///< Steps in shared memory, or in flight.
constexpr int kBlockK = 16;                  ///< Depth of a step.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

// A block's tile of c, what of it a thread computes, and how many threads of a warp are below one
// another.
struct Large {
  static constexpr int kTileM = 128, kTileN = 128, kThreadM = 8, kThreadN = 8, kLanesM = 4;
};
struct Wide {
  static constexpr int kTileM = 64, kTileN = 128, kThreadM = 8, kThreadN = 8, kLanesM = 8;
};
struct Medium {
  static constexpr int kTileM = 64, kTileN = 64, kThreadM = 8, kThreadN = 8, kLanesM = 8;
};
struct Small {
  static constexpr int kTileM = 32, kTileN = 32, kThreadM = 4, kThreadN = 4, kLanesM = 4;
};
template <class Shape>
constexpr int kThreadsOf = Shape::kTileM / Shape::kThreadM * (Shape::kTileN / Shape::kThreadN);
template <class Shape>
constexpr int kStageFloats = kBlockK * (Shape::kTileM + 4 + Shape::kTileN);  // of both tiles

/// A tile of c for each block. Grid: the map's. Block (kThreadsOf<Shape>).
/// @tparam kAligned see rows_are_aligned()
template <class Shape, bool kAligned>
__global__ void __launch_bounds__(kThreadsOf<Shape>, kBlocks * 256 / kThreadsOf<Shape>)
    gemm_cp_async(Product product, TileMapProblem map) {
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kThreads = kThreadsOf<Shape>;
  constexpr int kThreadM = Shape::kThreadM, kThreadN = Shape::kThreadN;
  constexpr int kDown = Shape::kLanesM, kAcross = 32 / kDown;            // threads of a warp
  constexpr int kWarpM = kDown * kThreadM, kWarpN = kAcross * kThreadN;  // its part of the tile
  constexpr int kWarps = kTileN / kWarpN;                                // across the tile
  // a's tile is transposed, so that the inner loop reads both the same way. A row of it is 4 floats
  // longer than the tile: a warp copies 8 columns of 4 rows at once, which thereby meet 32 banks.
  auto* a_tiles = dynamic_shared<float[kBlockK][kTileM + 4]>();
  auto* b_tiles = reinterpret_cast<float(*)[kBlockK][kTileN]>(a_tiles + kStages);

  tile_map::Tile tile;
  if (!tile_map::tile_of_block(map, &tile)) return;  // uniform for the block

  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int row = warp / kWarps * kWarpM + lane / kAcross * 4;  // its first ones
  const int column = warp % kWarps * kWarpN + lane % kAcross * 4;
  const std::int64_t m0 = std::int64_t{tile.m} * kTileM, n0 = std::int64_t{tile.n} * kTileN;
  float sums[kThreadM][kThreadN] = {};

  constexpr int kColumnsA = 8, kRowsA = kThreads / kColumnsA;  // that a block copies of a at once
  constexpr int kFloatsB = kAligned ? 4 : 1;  // of a copy of b; those of a have one
  constexpr int kCopiesB = kTileN / kFloatsB, kRowsB = kThreads / kCopiesB;
  const int a_m = static_cast<int>(threadIdx.x) / kColumnsA;  // this thread's first ones
  const int a_k = static_cast<int>(threadIdx.x) % kColumnsA;
  const int b_k = static_cast<int>(threadIdx.x) / kCopiesB;
  const int b_n = static_cast<int>(threadIdx.x) % kCopiesB * kFloatsB;
  std::int64_t a_at = (m0 + a_m) * product.K + a_k, b_at = b_k * std::int64_t{product.N} + n0 + b_n;
  // No step before this one meets an edge.
  const bool inside = m0 + kTileM <= product.M && n0 + kTileN <= product.N;
  const int edge_step = inside ? product.K / kBlockK : 0;
  const auto copy = [&](int step, int stage) {
    float* a_to = &a_tiles[stage][a_k][a_m];
    float* b_to = &b_tiles[stage][b_k][b_n];
    if (step < edge_step) {
      // Whole tiles: no tests, and as little address arithmetic as possible.
      const float* a_from = product.a + a_at;
      const float* b_from = product.b + b_at;
#pragma unroll
      for (int m = 0; m < kTileM; m += kRowsA) {
#pragma unroll
        for (int k = 0; k < kBlockK; k += kColumnsA) {
          ptx::cp_async<4>(a_to + k * (kTileM + 4) + m, a_from + std::int64_t{m} * product.K + k);
        }
      }
#pragma unroll
      for (int k = 0; k < kBlockK; k += kRowsB) {
        ptx::cp_async<4 * kFloatsB>(b_to + k * kTileN, b_from + std::int64_t{k} * product.N);
      }
    } else {
      // Rows of a beyond M and columns of b beyond N are left out: their sums are not stored.
      // Beyond K there must be zeros: cp.async writes them where it is told to read nothing.
      const std::int64_t left = product.K - std::int64_t{step} * kBlockK;
      // What is unrolled here takes registers from the multiply-adds.
      constexpr int kAtOnce = kTileM <= 32 ? 4 : 1;
#pragma unroll(kAtOnce)
      for (int m = 0; m < kTileM; m += kRowsA) {
        if (m0 + a_m + m >= product.M) break;
#pragma unroll
        for (int k = 0; k < kBlockK; k += kColumnsA) {
          const bool exists = a_k + k < left;
          const std::int64_t at = a_at + std::int64_t{m} * product.K + k;
          ptx::cp_async<4>(a_to + k * (kTileM + 4) + m, product.a + (exists ? at : 0),
                           exists ? 4 : 0);
        }
      }
#pragma unroll(kAtOnce)
      for (int k = 0; k < kBlockK; k += kRowsB) {
        if (n0 + b_n >= product.N) break;
        const bool exists = b_k + k < left;
        const std::int64_t at = b_at + std::int64_t{k} * product.N;
        ptx::cp_async<4 * kFloatsB>(b_to + k * kTileN, product.b + (exists ? at : 0),
                                    exists ? 4 * kFloatsB : 0);
      }
    }
    a_at += kBlockK;
    b_at += std::int64_t{kBlockK} * product.N;
  };
  const auto wait = [] {
    ptx::cp_async_wait_group<kStages - 2>();  // now this thread's copies have landed
    __syncthreads();  // those of the others, too, and all have read the tiles of the previous step
  };

  // A group of copies for every stage, also where there is nothing to copy: so that waiting for all
  // but the last kStages - 2 groups means the same in every step.
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < map.k_steps) copy(stage, stage);
    ptx::cp_async_commit_group();
  }
  float a[2][kThreadM], b[2][kThreadN];  // of this k and of the next one
  const auto read = [&](int buffer, int k) {
#pragma unroll
    for (int i = 0; i < kThreadM; i += 4) {
      read_four(&a_tiles[buffer][k][row + i * kDown], &a[k % 2][i]);
    }
#pragma unroll
    for (int j = 0; j < kThreadN; j += 4) {
      read_four(&b_tiles[buffer][k][column + j * kAcross], &b[k % 2][j]);
    }
  };

  int now = 0, write = kStages - 1;            // stages
  const auto copy_into_last = [&](int step) {  // no thread reads that stage after the barrier
    if (step + kStages - 1 < map.k_steps) copy(step + kStages - 1, write);
    ptx::cp_async_commit_group();
    write = write + 1 == kStages ? 0 : write + 1;
  };
  // With the large tile, a step's first operands are loaded before the last arithmetic of the one
  // before: it pays where there are registers for it.
  constexpr bool kAhead = kTileM == 128;
  if (kAhead) {
    wait();
    read(now, 0);
  }
  for (int step = 0; step < map.k_steps; ++step) {
    const int next = now + 1 == kStages ? 0 : now + 1;
    if (!kAhead) {
      wait();
      copy_into_last(step);
      read(now, 0);
    }
#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      if (k + 1 < kBlockK) {
        read(now, k + 1);
      } else if (kAhead) {
        wait();
        read(next, 0);  // after the last step, the values are not used
      }
      if (k == 0 && kAhead) copy_into_last(step);
        // Squares of 2 x 2, along rows of squares and back, for the compiler's choice of registers:
        // docs/ladders/gemm/cp_async.md explains it.
#pragma unroll
      for (int i = 0; i < kThreadM; i += 2) {
#pragma unroll
        for (int s = 0; s < kThreadN; s += 2) {
          const int j = i % 4 == 0 ? s : kThreadN - 2 - s;
          sums[i][j] += a[k % 2][i] * b[k % 2][j];
          sums[i][j + 1] += a[k % 2][i] * b[k % 2][j + 1];
          sums[i + 1][j + 1] += a[k % 2][i + 1] * b[k % 2][j + 1];
          sums[i + 1][j] += a[k % 2][i + 1] * b[k % 2][j];
        }
      }
    }
    now = next;
  }

#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; j += 4) {
      const int m = row + i / 4 * 4 * kDown + i % 4, n = column + j * kAcross;
      store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n,
                           {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]});
    }
  }
}

template <class Shape>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const TileMapProblem tiles = tiles_of(gemm, {Shape::kTileM, Shape::kTileN}, kBlockK, gemm.map);
  const auto kernel =
      rows_are_aligned(product) ? gemm_cp_async<Shape, true> : gemm_cp_async<Shape, false>;
  launch(kernel,
         {tile_map::launch_grid(tiles), dim3(kThreadsOf<Shape>),
          kStages * kStageFloats<Shape> * sizeof(float)},
         product, tiles);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const Product product = product_of(gemm, arrays);
  switch (shape_for(gemm)) {
    case TileShape::large: return launch_with<Large>(gemm, product);
    case TileShape::wide: return launch_with<Wide>(gemm, product);
    case TileShape::medium: return launch_with<Medium>(gemm, product);
    case TileShape::small: return launch_with<Small>(gemm, product);
  }
}

std::string choice_in_words(const GemmProblem& gemm) { return rows_in_words(gemm); }

}  // namespace

extern const Implementation<GemmArrays> cp_async = {
    .supports = supports_whole_tiles,
    .run = run,
    .tile = tile_for,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
