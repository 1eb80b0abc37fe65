/// @file tiled.cu
/// @brief gemm, rung 2 on the GPU: a block stages tiles of a and b in shared memory.
///
/// - Before: cuda_naive/gemm/direct.cu
/// - After: register_tile.cu
/// - The kernel: gemm_tiled.cuh (convolutions that end in matrix products use it, too)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The 32 x 32 elements of c that a block computes need 32 rows of a and 32 columns
/// of b, and each element of those is needed 32 times. So the block walks along k in steps of 32:
/// each of its 1024 threads loads one element of a's tile and one of b's, then all wait for one
/// another and multiply from shared memory. A tile map tells a block which tile of c it computes; c
/// is the same under each map.
///
///                    k ->  + - - +          one step: 2 x 1024 loads from memory,
///                          |  b  |          1024 x 32 multiply-adds
///                          + - - +
///         + - - + - - +    + - - +          tiles of 32 x 32 floats, in rows of 33: a warp that
///      m  |  a  | next|    |  c  |          fills a column (a transposed operand) meets 32 banks
///         + - - + - - +    + - - +
///
/// **Expect.** Loads from memory fall 32 times, to 1/16 for each multiply-add. Loads from shared
/// memory take their place, two for each multiply-add, and an SM serves one warp's load a cycle:
/// still at most 1/8 of the arithmetic peak, but the caches are no longer the limit.
/// **Costs.** Two barriers a step; 8448 bytes of shared memory and 1024 threads a block. Edges are
/// computed as whole tiles: with M = 1, one thread in 32 has an element. Declines the maps that
/// hand out less than whole tiles.
/// **Try.** Let a block have 32 x 8 threads, each with four elements of a column of c. How many
/// loads from shared memory does a multiply-add cost now?
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
