#include "ladders/conv2d_wgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_wgrad_ladder() {
  return {
      "conv2d_wgrad",
      "gradients of a 2-D convolution with respect to its weights and bias",
      [](const Problem& problem) {
        return conv2d_wgrad_signature(std::get<Conv2dProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, conv2d_wgrad, direct, "",
                  "the definition: one sum for each weight and each bias"),
          branch(
              "cpu_reference/conv2d_wgrad/direct",
              CPU_ROW(cpu_reference, conv2d_wgrad, im2col_gemm, "cpu_reference/conv2d_wgrad/direct",
                      "im2col, then a matrix product that sums over windows")),
          branch("cpu_reference/conv2d_wgrad/direct",
                 winograd(2, CPU_ROW(cpu_reference, conv2d_wgrad, winograd_2x2,
                                     "cpu_reference/conv2d_wgrad/im2col_gemm",
                                     "nine taps of 2 x 2 gradients by 16 products instead of 36"))),
          branch(
              "cpu_reference/conv2d_wgrad/winograd_2x2",
              winograd(4, CPU_ROW(cpu_reference, conv2d_wgrad, winograd,
                                  "cpu_reference/conv2d_wgrad/winograd_2x2",
                                  "of 4 x 4 gradients by 36 products, with a program's matrices"))),
          CUDA_ROW(cuda_naive, conv2d_wgrad, gather, "cpu_reference/conv2d_wgrad/direct",
                   "one thread a weight"),
          branch("cuda_naive/conv2d_wgrad/gather",
                 winograd(2, CUDA_ROW(cuda_naive, conv2d_wgrad, winograd_2x2,
                                      "cpu_reference/conv2d_wgrad/winograd_2x2",
                                      "16 matrix products over tiles, between two transforms"))),
          branch(
              "cuda_naive/conv2d_wgrad/gather",
              CUDA_ROW(cuda_optimized, conv2d_wgrad, im2col_gemm, "cuda_naive/conv2d_wgrad/gather",
                       "im2col, then a tiled matrix product; db by a reduction in shared memory")),
          branch("cuda_naive/conv2d_wgrad/gather",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, depthwise,
                          "cuda_optimized/conv2d_wgrad/im2col_gemm",
                          "one channel a filter: a block a filter, all its sums in registers")),
          branch("cuda_optimized/conv2d_wgrad/depthwise",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, depthwise_nhwc,
                          "cuda_optimized/conv2d_wgrad/depthwise",
                          "one channel a filter, NHWC: four channels a thread, sums in registers")),
          branch("cuda_optimized/conv2d_wgrad/depthwise_nhwc",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, depthwise_nhwc_tiles,
                          "cuda_optimized/conv2d_wgrad/depthwise_nhwc",
                          "one channel a filter, NHWC: a tile of x in shared memory and dy in "
                          "registers, asked for at once")),
          branch(
              "cuda_optimized/conv2d_wgrad/im2col_gemm",
              CUDA_ROW(
                  cuda_optimized, conv2d_wgrad, implicit_gemm,
                  "cuda_optimized/conv2d_wgrad/im2col_gemm",
                  "columns are found, not stored; 8 x 8 sums a thread; tiles turned on the way")),
          CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_split_k,
                   "cuda_optimized/conv2d_wgrad/implicit_gemm",
                   "the long sums are cut into parts, which are added up in a fixed order"),
          branch(
              "cuda_optimized/conv2d_wgrad/implicit_gemm_split_k",
              CUDA_ROW(
                  cuda_optimized, conv2d_wgrad, implicit_gemm_cp_async,
                  "cuda_optimized/conv2d_wgrad/implicit_gemm_split_k",
                  "pixels are decoded once a block, and copied straight to where they are read")),
          branch(
              "cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async",
              winograd(4, tf32(Tf32::parts,
                               CUDA_ROW(cuda_optimized, conv2d_wgrad, winograd_3xtf32,
                                        "cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async",
                                        "tiles of 4 x 4 with a quarter of the products, on tensor "
                                        "cores as three in TF32")))),
          branch("cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async",
                 tf32(Tf32::operands, CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_mma_tf32,
                                               "cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async",
                                               "implicit GEMM in NHWC on the tensor cores, its "
                                               "long sums split over blocks"))),
          branch("cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_wgmma_16bit,
                          "cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32",
                          "numbers of 16 bits: wgmma reads x and dy across, as they lie")),
          branch("cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_16bit",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_wgmma_nine_taps,
                          "cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_16bit",
                          "all nine taps in a block: each pixel is brought once for all of them")),
          branch("cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_nine_taps",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_wgmma_cluster_sums,
                          "cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_nine_taps",
                          "blocks of a cluster add up their sums in shared memory, before any go "
                          "to memory")),
          branch("cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_16bit",
                 CUDA_ROW(cuda_optimized, conv2d_wgrad, implicit_gemm_wgmma_pixel_shares,
                          "cuda_optimized/conv2d_wgrad/implicit_gemm_wgmma_16bit",
                          "1 x 1: an SM has a tile of dw, and a share of the pixels")),
      }};
}
