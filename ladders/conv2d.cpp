#include "ladders/conv2d.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_ladder() {
  return {
      "conv2d",
      "2-D convolution, forward: y = x * w + bias",
      [](const Problem& problem) { return conv2d_signature(std::get<Conv2dProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, conv2d, direct, "",
                  "the definition: one loop for each letter of the formula"),
          CPU_ROW(cpu_reference, conv2d, reordered, "cpu_reference/conv2d/direct",
                  "the innermost loop runs along memory, without a branch"),
          branch(
              "cpu_reference/conv2d/direct",
              CPU_ROW(cpu_reference, conv2d, im2col_gemm, "cpu_reference/conv2d/reordered",
                      "windows become the columns of a matrix, the convolution a matrix product")),
          branch(
              "cpu_reference/conv2d/im2col_gemm",
              CPU_ROW(cpu_reference, conv2d, implicit_gemm, "cpu_reference/conv2d/im2col_gemm",
                      "the same product with the columns found by index arithmetic, not copied")),
          CUDA_ROW(cuda_naive, conv2d, direct, "cpu_reference/conv2d/direct",
                   "one thread an output"),
          CUDA_ROW(cuda_optimized, conv2d, direct_tiled, "cuda_naive/conv2d/direct",
                   "a block stages its input tile, with halo, in shared memory"),
          CUDA_ROW(cuda_optimized, conv2d, direct_constant_weights,
                   "cuda_optimized/conv2d/direct_tiled",
                   "weights come from constant memory; common filter sizes are compiled in"),
          CUDA_ROW(cuda_optimized, conv2d, direct_register_tile,
                   "cuda_optimized/conv2d/direct_constant_weights",
                   "a thread computes a column of pixels for several output channels"),
          CUDA_ROW(cuda_optimized, conv2d, direct_float4,
                   "cuda_optimized/conv2d/direct_register_tile",
                   "the input tile is copied four floats at a time"),
          CUDA_ROW(cuda_optimized, conv2d, direct_double_buffered,
                   "cuda_optimized/conv2d/direct_float4",
                   "the next channel's tile is on its way while the current one is computed"),
          CUDA_ROW(cuda_optimized, conv2d, direct_cp_async,
                   "cuda_optimized/conv2d/direct_double_buffered",
                   "inputs and weights arrive in shared memory by themselves"),
          branch(
              "cuda_optimized/conv2d/direct_cp_async",
              CUDA_ROW(
                  cuda_optimized, conv2d, direct_row_tile, "cuda_optimized/conv2d/direct_cp_async",
                  "four neighbours of a row a thread: windows are vectors, warps pass on their "
                  "sums to store them")),
          CUDA_ROW(cuda_optimized, conv2d, direct_deinterleaved,
                   "cuda_optimized/conv2d/direct_row_tile",
                   "stride 2: even columns lie before odd ones, so that windows stay vectors"),
          branch(
              "cuda_optimized/conv2d/direct_row_tile",
              CUDA_ROW(
                  cuda_optimized, conv2d, direct_register_window,
                  "cuda_optimized/conv2d/direct_row_tile",
                  "few channels, 3 x 3: x goes straight to registers, refilled as they are used")),
          branch("cuda_optimized/conv2d/direct_deinterleaved",
                 CUDA_ROW(cuda_optimized, conv2d, depthwise,
                          "cuda_optimized/conv2d/direct_deinterleaved",
                          "one channel a filter: planes are copied as one piece of memory")),
          branch("cuda_naive/conv2d/direct",
                 CUDA_ROW(cuda_naive, conv2d, im2col_gemm, "cpu_reference/conv2d/im2col_gemm",
                          "a kernel for the columns and one for the product, image after image")),
          branch(
              "cuda_naive/conv2d/im2col_gemm",
              CUDA_ROW(cuda_optimized, conv2d, im2col_gemm_chunks, "cuda_naive/conv2d/im2col_gemm",
                       "columns in pieces that stay in the L2 cache until the product reads them")),
          branch("cuda_naive/conv2d/direct",
                 CUDA_ROW(cuda_naive, conv2d, implicit_gemm, "cuda_naive/conv2d/im2col_gemm",
                          "one thread a sum of the product; every index is decoded by division")),
          CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_tiled, "cuda_naive/conv2d/implicit_gemm",
                   "a block stages tiles of weights and of gathered columns"),
          CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_register_tile,
                   "cuda_optimized/conv2d/implicit_gemm_tiled",
                   "a thread computes 8 x 8 sums in registers"),
          CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_hoisted,
                   "cuda_optimized/conv2d/implicit_gemm_register_tile",
                   "pixels are decoded once, taps by a table, padding by bits"),
          branch("cuda_optimized/conv2d/implicit_gemm_hoisted",
                 CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_vectorized,
                          "cuda_optimized/conv2d/implicit_gemm_hoisted",
                          "packed weights, warp tiles, vector loads and stores")),
          branch(
              "cuda_optimized/conv2d/implicit_gemm_vectorized",
              CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_cp_async,
                       "cuda_optimized/conv2d/implicit_gemm_vectorized",
                       "copies of three stages in flight; taps outermost, zero-fill is padding")),
          branch(
              "cuda_optimized/conv2d/implicit_gemm_cp_async",
              CUDA_ROW(
                  cuda_optimized, conv2d, implicit_gemm_split_k,
                  "cuda_optimized/conv2d/implicit_gemm_cp_async",
                  "several blocks share a tile's sums; a second kernel adds their parts in order")),
          branch("cuda_optimized/conv2d/implicit_gemm_cp_async",
                 CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_mma_tf32,
                          "cuda_optimized/conv2d/implicit_gemm_cp_async",
                          "implicit GEMM in NHWC on the tensor cores, factors rounded to TF32")),
          branch(
              "cuda_optimized/conv2d/implicit_gemm_mma_tf32",
              CUDA_ROW(cuda_optimized, conv2d, implicit_gemm_wgmma_tf32,
                       "cuda_optimized/conv2d/implicit_gemm_mma_tf32",
                       "Hopper's copy engine finds the windows, and wgmma multiplies them (TF32)")),
          branch("cuda_optimized/conv2d/direct_deinterleaved",
                 CUDA_ROW(cuda_optimized, conv2d, direct_mma_tf32,
                          "cuda_optimized/conv2d/implicit_gemm_mma_tf32",
                          "few channels: tensor cores read windows out of a patch in shared memory "
                          "(TF32)")),
      }};
}
