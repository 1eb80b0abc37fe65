#include "ladders/conv2d_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_dgrad_ladder() {
  return {
      "conv2d_dgrad", "gradient of a 2-D convolution with respect to its input",
      [](const Problem& problem) {
        return conv2d_dgrad_signature(std::get<Conv2dProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, conv2d_dgrad, direct, "",
                          "definition: the forward loops, with each product added to dx"),
                  CUDA_ROW(cuda_naive, conv2d_dgrad, gather, "cpu_reference/conv2d_dgrad/direct",
                           "gather: one thread per element of dx, without atomics"),
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d_dgrad, implicit_gemm, residue_classes,
                      "cuda_naive/conv2d_dgrad/gather",
                      "implicit GEMM: one GEMM for each residue class of pixels modulo the stride"),
                  CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, implicit_gemm, cp_async,
                              "cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes",
                              "cp.async pipeline: packed weights, three stages in flight"),
                  needs(
                      "sm_80",
                      CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, implicit_gemm, mma,
                                  "cuda_optimized/conv2d_dgrad/implicit_gemm/cp_async",
                                  "tensor cores: mma.sync in half precision (fp16, bf16) on NHWC; "
                                  "ldmatrix transposes the weights")),
                  needs("sm_90a",
                        tf32(Tf32::operands,
                             CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, implicit_gemm, wgmma_tf32,
                                         "cuda_optimized/conv2d_dgrad/implicit_gemm/mma",
                                         "TMA and wgmma: a forward pass over dy for each residue "
                                         "class (TF32)"))),
                  needs("sm_90a",
                        CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, implicit_gemm, warp_specialized,
                                    "cuda_optimized/conv2d_dgrad/implicit_gemm/wgmma_tf32",
                                    "half precision with wgmma: the weights are read in "
                                    "their own layout (fp16, bf16)")),
              }),
          alternatives({
              CPU_ROW(cpu_reference, conv2d_dgrad, gemm_col2im, "cpu_reference/conv2d_dgrad/direct",
                      "GEMM and col2im: the transpose of im2col and GEMM"),
              CUDA_ROW(cuda_optimized, conv2d_dgrad, gemm_col2im, "cuda_naive/conv2d_dgrad/gather",
                       "tiled GEMM, then col2im"),
              CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, depthwise, nchw,
                          "cuda_naive/conv2d_dgrad/gather",
                          "depthwise: dy is convolved with the rotated filter"),
              CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, depthwise, nhwc,
                          "cuda_optimized/conv2d_dgrad/depthwise/nchw",
                          "depthwise NHWC: the forward kernel with the rotated filter"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d_dgrad, depthwise, nhwc_tiled,
                  "cuda_optimized/conv2d_dgrad/depthwise/nhwc",
                  "depthwise NHWC: a tile of dy is staged in shared memory by asynchronous copies"),
              winograd(4,
                       CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, winograd, 4x4,
                                   "cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes",
                                   "Winograd F(4 x 4, 3 x 3): a quarter of the multiplications")),
              needs("sm_80", tf32(Tf32::operands,
                                  CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, implicit_gemm, mma_tf32,
                                              "cuda_optimized/conv2d_dgrad/implicit_gemm/mma",
                                              "tensor cores in TF32: mma.sync on NHWC, one residue "
                                              "class at a time"))),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d_dgrad, implicit_gemm, split_k,
                  "cuda_optimized/conv2d_dgrad/implicit_gemm/cp_async",
                  "split-K: several blocks share a tile; a second kernel adds the partial results"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d_dgrad, implicit_gemm, few_channels,
                  "cuda_optimized/conv2d_dgrad/implicit_gemm/cp_async",
                  "few channels: the residue classes of all pixels are the rows of one GEMM"),
          }),
          advanced({
              needs(
                  "sm_90a",
                  winograd(4, tf32(Tf32::parts,
                                   CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, winograd, 3xtf32,
                                               "cuda_optimized/conv2d_dgrad/winograd/4x4",
                                               "Winograd on tensor cores: each FP32 multiplication "
                                               "as three in TF32 (3xTF32)")))),
              needs(
                  "sm_90a",
                  tf32(Tf32::operands,
                       CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, hopper, halo_tile,
                                   "cuda_optimized/conv2d_dgrad/implicit_gemm/warp_specialized",
                                   "halo-tile reuse: each patch of dy is loaded once for all taps; "
                                   "channels are the rows of wgmma"))),
              needs("sm_90a",
                    CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, hopper, cluster_split_k,
                                "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                                "split-K over a cluster: accumulators are exchanged through "
                                "distributed shared memory")),
              needs("sm_90a", CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, hopper, full_tiles,
                                          "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                                          "full tiles: no padding columns, and both consumer "
                                          "warpgroups share a halo tile")),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(cuda_optimized, conv2d_dgrad, hopper, weight_stationary,
                              "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                              "weight-stationary 1 x 1: all weights stay in shared memory, a tile "
                              "is any pixels of all images")),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d_dgrad, hopper, strided_zeros,
                      "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                      "strided 1 x 1: otherwise idle warps write the zeros between the pixels")),
          }),
      })};
}
