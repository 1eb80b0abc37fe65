/// @file cp_async.cu
/// @brief gemm: the tiles of the next steps are copied asynchronously, past the registers.
///
/// - Before: warp_tiles.cu
/// - After: split_k.cu, mma_tf32.cu
/// - The inner part: async_tiles.cuh (split_k and stream_k are made of it, too)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A thread that loads into registers must come back to store what has arrived.
/// `cp.async` (Ampere and later) copies from global to shared memory by itself. A thread starts the
/// copies of a step, closes them as a group, and later waits for all groups but the last few: the
/// copies of several steps can be on their way, into a ring of stages in shared memory:
///
///     stage 0   | copy 0      | compute 0 | copy 3    . . . . . . | compute 3
///     stage 1   |   copy 1  . . . . . . . | compute 1 | copy 4    . . . . .        time ->
///     stage 2   |                         | copy 2 . . . . . . .  | compute 2
///                             ^ before each step: wait for its group, one barrier,
///                               then start the copies of the step after the next
///
/// A copy cannot transpose, but it may be as small as 4 bytes: a's elements go one by one to their
/// places in the transposed tile, b's rows in pieces of 16 bytes. Past K the copies write zeros.
///
/// **Expect.** For each thread and step of 16: 1024 multiply-adds, 64 float4 loads, 10 copies, some
/// 60 other instructions. The copies take no registers for data. The last few per cent are decided
/// by which registers the compiler gives the multiply-adds. Predicted on an H200: 49 TFLOP/s at
/// 4096 (2.8 ms).
/// **Costs.** 50 KB of shared memory for three stages. Before sm_80 the copies are loads and
/// stores, one after the other. Declines what register_tile declines.
/// **Try.** Leave cp_async_wait_group() out. On a GPU the result may well be right most of the
/// time. What does cuda_on_cpu make of it?
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/async_tiles.cuh"
#include "cuda_optimized/gemm/four.cuh"
#include "cuda_optimized/gemm/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kStages = 3;   ///< Steps whose tiles are in shared memory, or on their way.
constexpr int kBlockK = 16;  ///< Depth of a step.
using Large = ThreadTile<128, 128, kBlockK, 8, 8, 4>;
using Wide = ThreadTile<64, 128, kBlockK, 8, 8, 8>;
using Medium = ThreadTile<64, 64, kBlockK, 8, 8, 8>;
using Small = ThreadTile<32, 32, kBlockK, 4, 4, 4>;
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

/// A tile of c for each block. Grid: the map's. Block (Tile::kThreads).
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    gemm_cp_async(Product product, TileMapProblem map) {
  tile_map::Tile place;
  if (!tile_map::tile_of_block(map, &place)) return;  // the whole block, at once

  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  AsyncTiles<Tile, kStages, kAligned> tiles(product, place);
  if constexpr (Tile::kBlockM == 128) {
    tiles.add_steps_ahead(tile, 0, map.k_steps, sums);
  } else {
    tiles.add_steps(tile, 0, map.k_steps, sums);
  }

  const std::int64_t m0 = std::int64_t{place.m} * Tile::kBlockM;
  const std::int64_t n0 = std::int64_t{place.n} * Tile::kBlockN;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
  });
}

template <class Tile>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const auto kernel =
      rows_are_aligned(product) ? gemm_cp_async<Tile, true> : gemm_cp_async<Tile, false>;
  const TileMapProblem tiles = tiles_of(gemm, {Tile::kBlockM, Tile::kBlockN}, kBlockK, gemm.map);
  launch(kernel,
         {tile_map::launch_grid(tiles), dim3(Tile::kThreads),
          AsyncTiles<Tile, kStages, true>::kSharedBytes},
         product, tiles);
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
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

Implementation<GemmProblem> cp_async() {
  return {
      .supports = supports_whole_tiles, .run = run, .tile = tile_for, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
