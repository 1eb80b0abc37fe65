/// @file tiled.cu
/// @brief gemm, rung 2 on the GPU: a block stages tiles of a and b in shared memory.
///
/// - Before: cuda_naive/gemm/direct.cu (every thread reads its own row of a and column of b)
/// - After:  register_tile.cu (a thread computes 8 x 8 elements of c instead of one)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The 32 x 32 elements of c that a block computes need 32 rows of a and 32 columns
/// of b, and each element of those is needed 32 times. So the block walks along k in steps of 32:
/// its 1024 threads load one element each of a's and of b's tile, wait for one another, and
/// multiply from shared memory. The kernel is in gemm_tiled.cuh, because convolutions that end in
/// matrix products use it too.
///
///                    k ->  + - - +          one step: 2 x 1024 loads from memory,
///                          |  b  |          1024 x 32 multiply-adds
///                          + - - +
///         + - - + - - +    + - - +          tiles of 32 x 32 floats, in rows of 33: a warp that
///      m  |  a  | next|    |  c  |          fills a column (a transposed operand) meets 32 banks
///         + - - + - - +    + - - +
///
/// Which tile of c a block computes is not the kernel's business: it asks a tile map, and computes
/// the same c under each. Blocks to which a map gives no tile leave before the first barrier.
///
/// **Expect.** Loads from memory fall 32 times, to 1 / 16 for each multiply-add. Loads from shared
/// memory take their place, two for each multiply-add (one of them a broadcast), and an SM serves
/// one warp's request a cycle: still at most 1/8 of the arithmetic peak, but no longer at the mercy
/// of the caches.
/// **Costs.** Two barriers a step; 8448 bytes of shared memory and 1024 threads a block. Edges are
/// computed as whole tiles: a product with M = 1 uses a 32nd of its threads. Declines the maps that
/// hand out less than whole tiles.
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/gemm_tiled.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

Declined supports(const GemmProblem& gemm) {
  return tile_map::why_no_whole_tiles(tiles_of(gemm.M, gemm.N, gemm.K, gemm.map));
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
  const std::int64_t N = gemm.N, K = gemm.K;
  launch_gemm_tiled({.M = gemm.M,
                     .N = gemm.N,
                     .K = gemm.K,
                     .a = {.data = arrays.in<float>("a"), .row_stride = K, .column_stride = 1},
                     .b = {.data = arrays.in<float>("b"), .row_stride = N, .column_stride = 1},
                     .c = {.data = arrays.out<float>("c"), .row_stride = N, .column_stride = 1}},
                    gemm.map);
}

OutputTile tile(const GemmProblem&) { return {kTile, kTile}; }

}  // namespace

Implementation<GemmProblem> tiled() { return {.supports = supports, .run = run, .tile = tile}; }

}  // namespace convladder::BACKEND::cuda_optimized::gemm
