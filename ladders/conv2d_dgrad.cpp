#include "ladders/conv2d_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_dgrad_ladder() {
  return {
      "conv2d_dgrad",
      "gradient of a 2-D convolution with respect to its input",
      [](const Problem& problem) {
        return conv2d_dgrad_signature(std::get<Conv2dProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, conv2d_dgrad, direct, "",
                  "the definition: the forward loops with the arrow turned round"),
          branch(
              "cpu_reference/conv2d_dgrad/direct",
              CPU_ROW(cpu_reference, conv2d_dgrad, gemm_col2im, "cpu_reference/conv2d_dgrad/direct",
                      "a matrix product for the columns, col2im for the pixels")),
          CUDA_ROW(cuda_naive, conv2d_dgrad, gather, "cpu_reference/conv2d_dgrad/direct",
                   "one thread gathers one element of dx"),
          branch("cuda_naive/conv2d_dgrad/gather",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, gemm_col2im,
                          "cuda_naive/conv2d_dgrad/gather", "a tiled matrix product, then col2im")),
          branch("cuda_naive/conv2d_dgrad/gather",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, depthwise,
                          "cuda_optimized/conv2d_dgrad/gemm_col2im",
                          "one channel a filter: dy convolved with the filter turned round")),
          branch(
              "cuda_optimized/conv2d_dgrad/depthwise",
              CUDA_ROW(
                  cuda_optimized, conv2d_dgrad, depthwise_nhwc,
                  "cuda_optimized/conv2d_dgrad/depthwise",
                  "one channel a filter, NHWC: the forward kernel, with the filter turned round")),
          branch(
              "cuda_optimized/conv2d_dgrad/depthwise_nhwc",
              CUDA_ROW(
                  cuda_optimized, conv2d_dgrad, depthwise_nhwc_tiles,
                  "cuda_optimized/conv2d_dgrad/depthwise_nhwc",
                  "one channel a filter, NHWC: a tile of dy is copied to shared memory at once")),
          branch("cuda_optimized/conv2d_dgrad/gemm_col2im",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm,
                          "cuda_optimized/conv2d_dgrad/gemm_col2im",
                          "a product without columns for each residue class of pixels")),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm",
                 winograd(4, CUDA_ROW(cuda_optimized, conv2d_dgrad, winograd_4x4,
                                      "cuda_optimized/conv2d_dgrad/gemm_col2im",
                                      "tiles of 4 x 4 with a quarter of the products"))),
          branch(
              "cuda_optimized/conv2d_dgrad/winograd_4x4",
              winograd(4, tf32(Tf32::parts,
                               CUDA_ROW(cuda_optimized, conv2d_dgrad, winograd_3xtf32,
                                        "cuda_optimized/conv2d_dgrad/winograd_4x4",
                                        "its products on tensor cores, each as three in TF32")))),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_cp_async,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm",
                          "packed weights, copies of three stages in flight")),
          branch(
              "cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
              CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_split_k,
                       "cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
                       "several blocks share the sums of a tile, a second kernel adds the parts")),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_few_channels,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
                          "few channels: all residue classes are rows of one product")),
          branch(
              "cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
              tf32(Tf32::operands,
                   CUDA_ROW(
                       cuda_optimized, conv2d_dgrad, implicit_gemm_mma_tf32,
                       "cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async",
                       "implicit GEMM in NHWC on the tensor cores, a class of pixels at a time"))),
          branch(
              "cuda_optimized/conv2d_dgrad/implicit_gemm_mma_tf32",
              tf32(
                  Tf32::operands,
                  CUDA_ROW(
                      cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_tf32,
                      "cuda_optimized/conv2d_dgrad/implicit_gemm_mma_tf32",
                      "a forward pass over dy for each residue of the stride, with wgmma (TF32)"))),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_tf32",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_16bit,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_tf32",
                          "numbers of 16 bits: wgmma reads the weights as they lie")),
          branch(
              "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_16bit",
              tf32(Tf32::operands,
                   CUDA_ROW(
                       cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_patches,
                       "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_16bit",
                       "a patch of dy is brought once for all taps; channels are wgmma's rows"))),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_block_pairs,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                          "split-K over a cluster: two blocks share a tile's sums, and exchange "
                          "halves of them through distributed shared memory")),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_full_tiles,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                          "no column is nobody's, and both warpgroups share a patch")),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_all_filters,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                          "one tap: all weights stay, and a tile is any pixels of all images")),
          branch("cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                 CUDA_ROW(cuda_optimized, conv2d_dgrad, implicit_gemm_wgmma_zeros,
                          "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_patches",
                          "one tap and a stride: idle warps write the zeros between the pixels")),
      }};
}
