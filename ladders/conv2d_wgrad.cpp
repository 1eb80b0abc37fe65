#include "ladders/conv2d_wgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_wgrad_ladder() {
  return {
      "conv2d_wgrad", "gradients of a 2-D convolution with respect to its weights and bias",
      [](const Problem& problem) {
        return conv2d_wgrad_signature(std::get<Conv2dProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, conv2d_wgrad, direct, "",
                          "definition: one sum for each weight and each bias"),
                  CUDA_ROW(cuda_naive, conv2d_wgrad, gather, "cpu_reference/conv2d_wgrad/direct",
                           "naive CUDA, gather: one thread per weight sums over all outputs"),
                  CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, implicit_gemm, register_tile,
                              "cuda_naive/conv2d_wgrad/gather",
                              "implicit GEMM: columns are gathered, not stored; 8 x 8 accumulators "
                              "per thread"),
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d_wgrad, implicit_gemm, split_k,
                      "cuda_optimized/conv2d_wgrad/implicit_gemm/register_tile",
                      "split-K: the long sums are split over blocks and added in a fixed order"),
                  CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, implicit_gemm, cp_async,
                              "cuda_optimized/conv2d_wgrad/implicit_gemm/split_k",
                              "cp.async pipeline: pixels are decoded once per block"),
                  needs("sm_80", CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, implicit_gemm, mma,
                                             "cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async",
                                             "tensor cores in half precision: mma.sync on NHWC, "
                                             "ldmatrix transposes both operands (fp16, bf16)")),
                  needs("sm_90a",
                        CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, implicit_gemm, warp_specialized,
                                    "cuda_optimized/conv2d_wgrad/implicit_gemm/mma",
                                    "half precision with wgmma: x and dy are read "
                                    "transposed, in their own layout (fp16, bf16)")),
              }),
          alternatives({
              CPU_ROW(cpu_reference, conv2d_wgrad, im2col_gemm, "cpu_reference/conv2d_wgrad/direct",
                      "im2col and GEMM: the GEMM sums over windows"),
              winograd(2, CPU_ROW(cpu_reference, conv2d_wgrad, winograd_2x2,
                                  "cpu_reference/conv2d_wgrad/direct",
                                  "Winograd F(3 x 3, 2 x 2): nine taps of 2 x 2 gradients take 16 "
                                  "multiplications instead of 36")),
              winograd(4,
                       CPU_ROW(cpu_reference, conv2d_wgrad, winograd,
                               "cpu_reference/conv2d_wgrad/winograd_2x2",
                               "Winograd F(3 x 3, 4 x 4): 36 multiplications for 4 x 4 gradients; "
                               "transform matrices are computed from interpolation points")),
              winograd(
                  2,
                  CUDA_ROW(cuda_naive, conv2d_wgrad, winograd_2x2, "cuda_naive/conv2d_wgrad/gather",
                           "Winograd F(3 x 3, 2 x 2): 16 GEMMs between two transform kernels")),
              CUDA_ROW(cuda_optimized, conv2d_wgrad, im2col_gemm, "cuda_naive/conv2d_wgrad/gather",
                       "im2col and tiled GEMM; db by a reduction in shared memory"),
              CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, depthwise, nchw,
                          "cuda_naive/conv2d_wgrad/gather",
                          "depthwise: one block per filter, all accumulators in registers"),
              CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, depthwise, nhwc,
                          "cuda_optimized/conv2d_wgrad/depthwise/nchw",
                          "depthwise NHWC: a thread accumulates four channels in registers"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d_wgrad, depthwise, nhwc_tiled,
                  "cuda_optimized/conv2d_wgrad/depthwise/nhwc",
                  "depthwise NHWC: x is staged in shared memory and dy in registers, loaded "
                  "together"),
              needs("sm_80", tf32(Tf32::operands,
                                  CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, implicit_gemm, mma_tf32,
                                              "cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async",
                                              "tensor cores in TF32: mma.sync on NHWC, split-K"))),
          }),
          advanced({
              needs("sm_90a",
                    winograd(4, tf32(Tf32::parts,
                                     CUDA_ROW_IN(
                                         cuda_optimized, conv2d_wgrad, winograd, 3xtf32,
                                         "cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async",
                                         "Winograd F(3 x 3, 4 x 4) on tensor cores, in 3xTF32")))),
              needs("sm_90a",
                    CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, hopper, halo_tile,
                                "cuda_optimized/conv2d_wgrad/implicit_gemm/warp_specialized",
                                "halo-tile reuse: a block accumulates all nine taps, each "
                                "pixel is loaded once")),
              needs("sm_90a",
                    CUDA_ROW_IN(cuda_optimized, conv2d_wgrad, hopper, cluster_reduction,
                                "cuda_optimized/conv2d_wgrad/hopper/halo_tile",
                                "cluster reduction: blocks add their accumulators in distributed "
                                "shared memory before any store")),
              needs("sm_90a",
                    CUDA_ROW_IN(
                        cuda_optimized, conv2d_wgrad, hopper, split_k_1x1,
                        "cuda_optimized/conv2d_wgrad/implicit_gemm/warp_specialized",
                        "1 x 1, split-K: each SM owns a tile of dw and a share of the pixels")),
          }),
      })};
}
