#include "ladders/conv2d.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_ladder() {
  return {
      "conv2d", "2-D convolution, forward: y = x * w + bias",
      [](const Problem& problem) { return conv2d_signature(std::get<Conv2dProblem>(problem)); },
      in_order({
          spine(
              "direct",
              {
                  CPU_ROW(cpu_reference, conv2d, direct, "",
                          "definition: seven nested loops, one for each index of the formula"),
                  CPU_ROW(cpu_reference, conv2d, reordered, "cpu_reference/conv2d/direct",
                          "loop interchange: the innermost loop runs along contiguous memory, "
                          "without a branch"),
                  CUDA_ROW(cuda_naive, conv2d, direct, "cpu_reference/conv2d/direct",
                           "naive CUDA: one thread per output"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, tiled, "cuda_naive/conv2d/direct",
                              "shared-memory tile: each block stages its input tile and halo once"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, constant_weights,
                              "cuda_optimized/conv2d/direct/tiled",
                              "constant memory: weights are broadcast; common filter sizes are "
                              "template parameters"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, register_tile,
                              "cuda_optimized/conv2d/direct/constant_weights",
                              "register tile: a thread accumulates a column of pixels for several "
                              "output channels"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, float4,
                              "cuda_optimized/conv2d/direct/register_tile",
                              "float4: the input tile is loaded four floats at a time"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, double_buffered,
                              "cuda_optimized/conv2d/direct/float4",
                              "double buffering: the tile of the next channel is prefetched during "
                              "the arithmetic"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, direct, cp_async,
                              "cuda_optimized/conv2d/direct/double_buffered",
                              "cp.async: inputs and weights are copied to shared memory "
                              "asynchronously, past the registers"),
              }),
          spine(
              "implicit_gemm",
              {
                  CPU_ROW(cpu_reference, conv2d, im2col_gemm, "cpu_reference/conv2d/direct",
                          "im2col: windows become the columns of a matrix, the convolution becomes "
                          "a GEMM"),
                  CUDA_ROW(
                      cuda_naive, conv2d, im2col_gemm, "cpu_reference/conv2d/im2col_gemm",
                      "im2col and GEMM: two kernels per image, columns pass through global memory"),
                  CUDA_ROW(cuda_naive, conv2d, implicit_gemm, "cuda_naive/conv2d/im2col_gemm",
                           "naive implicit GEMM: one thread per output; each index is decoded by "
                           "division"),
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d, implicit_gemm, tiled,
                      "cuda_naive/conv2d/implicit_gemm",
                      "shared-memory tiles: a block stages tiles of weights and of gathered "
                      "columns"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, register_tile,
                              "cuda_optimized/conv2d/implicit_gemm/tiled",
                              "register tile: a thread holds 8 x 8 accumulators"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, precomputed_offsets,
                              "cuda_optimized/conv2d/implicit_gemm/register_tile",
                              "precomputed offsets: pixels are decoded once, taps are read from a "
                              "table, padding is a bit mask"),
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d, implicit_gemm, packed_weights,
                      "cuda_optimized/conv2d/implicit_gemm/precomputed_offsets",
                      "packed weights: a small kernel transposes them once and pads them to "
                      "whole tiles"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, vectorized,
                              "cuda_optimized/conv2d/implicit_gemm/packed_weights",
                              "vector access: 16-byte loads and stores, 16 steps of k per tile"),
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d, implicit_gemm, warp_tiles,
                      "cuda_optimized/conv2d/implicit_gemm/vectorized",
                      "warp tiles: a warp's accumulators form one rectangle, which reads the "
                      "fewest vectors from shared memory"),
                  CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, cp_async,
                              "cuda_optimized/conv2d/implicit_gemm/warp_tiles",
                              "cp.async pipeline: three stages in flight; zero-fill implements the "
                              "padding"),
                  needs("sm_80",
                        CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, mma,
                                    "cuda_optimized/conv2d/implicit_gemm/cp_async",
                                    "tensor cores: mma.sync in half precision (fp16, bf16) "
                                    "on NHWC, ldmatrix loads swizzled tiles")),
                  needs("sm_90",
                        CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, tma_im2col,
                                    "cuda_optimized/conv2d/implicit_gemm/mma",
                                    "im2col-mode TMA: one instruction loads the windows of all "
                                    "pixels of a tile, swizzled and padded")),
                  needs("sm_90a",
                        CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, wgmma,
                                    "cuda_optimized/conv2d/implicit_gemm/tma_im2col",
                                    "wgmma: warpgroups multiply windows and filters in shared "
                                    "memory asynchronously")),
                  needs("sm_90a",
                        CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, warp_specialized,
                                    "cuda_optimized/conv2d/implicit_gemm/wgmma",
                                    "warp specialization in a persistent kernel: a producer warp "
                                    "loads, two consumer warpgroups multiply")),
                  needs("sm_90a",
                        CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, halo_tile,
                                    "cuda_optimized/conv2d/implicit_gemm/warp_specialized",
                                    "halo-tile reuse: each input patch is loaded once and "
                                    "read for all R x S taps")),
              }),
          alternatives({
              CPU_ROW(
                  cpu_reference, conv2d, implicit_gemm, "cpu_reference/conv2d/im2col_gemm",
                  "implicit GEMM: column elements are found by index arithmetic and never stored"),
              CPU_ROW(cpu_reference, conv2d, im2col_gemm_blocked,
                      "cpu_reference/conv2d/implicit_gemm",
                      "cache blocking: blocks of columns stay in the cache and feed a register "
                      "tile, on all cores"),
              winograd(2, CPU_ROW(cpu_reference, conv2d, winograd_1d, "cpu_reference/conv2d/direct",
                                  "Winograd F(2, 3): two outputs of a row take four "
                                  "multiplications instead of six")),
              winograd(kWinogradPieces, CPU_ROW(cpu_reference, conv2d, winograd_split_rows,
                                                "cpu_reference/conv2d/winograd_1d",
                                                "Winograd F(3, 3) for wide filters: a row of up to "
                                                "six taps is split into two rows of three")),
              winograd(2, CPU_ROW(cpu_reference, conv2d, winograd_2x2,
                                  "cpu_reference/conv2d/winograd_1d",
                                  "Winograd F(2 x 2, 3 x 3): 16 multiplications for four outputs "
                                  "instead of 36")),
              winograd(4, CPU_ROW(cpu_reference, conv2d, winograd_4x4,
                                  "cpu_reference/conv2d/winograd_2x2",
                                  "Winograd F(4 x 4, 3 x 3): 36 multiplications for 16 outputs; "
                                  "transform matrices are computed from interpolation points")),
              winograd({4, WinogradPoints::imaginary},
                       CPU_ROW(cpu_reference, conv2d, winograd_complex,
                               "cpu_reference/conv2d/winograd_4x4",
                               "Winograd F(4 x 4, 3 x 3) with the complex interpolation points i "
                               "and -i: 46 multiplications")),
              whole_images(CPU_ROW(cpu_reference, conv2d, fft_whole_image,
                                   "cpu_reference/conv2d/winograd_4x4",
                                   "FFT convolution: the interpolation points are roots of unity, "
                                   "a whole image is one tile")),
              whole_images(CPU_ROW(
                  cpu_reference, conv2d, fft_overlap_save, "cpu_reference/conv2d/fft_whole_image",
                  "overlap-save FFT: small overlapping tiles, each filter is transformed once")),
              whole_images(CPU_ROW(cpu_reference, conv2d, fft_real,
                                   "cpu_reference/conv2d/fft_overlap_save",
                                   "real FFT: two real tiles are transformed as one complex tile")),
              CUDA_ROW_IN(cuda_optimized, conv2d, direct, row_tile,
                          "cuda_optimized/conv2d/direct/cp_async",
                          "row tile: a thread computes four adjacent outputs from vector windows; "
                          "lanes exchange results to store vectors"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d, direct, deinterleaved,
                  "cuda_optimized/conv2d/direct/row_tile",
                  "stride 2: even and odd columns are stored apart, so that windows are still "
                  "read as vectors"),
              CUDA_ROW_IN(cuda_optimized, conv2d, direct, register_window,
                          "cuda_optimized/conv2d/direct/row_tile",
                          "register window: for few channels and 3 x 3 filters x is kept in "
                          "registers, without shared memory"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d, depthwise, nchw,
                  "cuda_optimized/conv2d/direct/deinterleaved",
                  "depthwise: one filter per channel; a plane is copied as one contiguous piece"),
              CUDA_ROW_IN(
                  cuda_optimized, conv2d, depthwise, nhwc, "cuda_optimized/conv2d/depthwise/nchw",
                  "depthwise NHWC: a thread computes four channels of adjacent pixels of two rows"),
              CUDA_ROW_IN(cuda_optimized, conv2d, depthwise, nhwc_tiled,
                          "cuda_optimized/conv2d/depthwise/nhwc",
                          "depthwise NHWC: a tile of pixels is staged in shared memory by "
                          "asynchronous copies"),
              CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, im2col_l2_blocked,
                          "cuda_naive/conv2d/im2col_gemm",
                          "L2 blocking: the column matrix is computed in parts that the GEMM reads "
                          "from the L2 cache"),
              winograd(
                  2, CUDA_ROW(cuda_naive, conv2d, winograd_2x2, "cuda_naive/conv2d/im2col_gemm",
                              "Winograd F(2 x 2, 3 x 3): 16 GEMMs between two transform kernels")),
              winograd(4,
                       CUDA_ROW_IN(
                           cuda_optimized, conv2d, winograd, 4x4, "cuda_naive/conv2d/winograd_2x2",
                           "Winograd F(4 x 4, 3 x 3): 36 batched GEMMs on whole, padded tiles")),
              needs(
                  "sm_80",
                  winograd(2, CUDA_ROW_IN(cuda_optimized, conv2d, winograd, fused,
                                          "cuda_optimized/conv2d/winograd/4x4",
                                          "fused Winograd: transforms in registers, 16 small GEMMs "
                                          "in shared memory, one kernel"))),
              winograd(kWinogradPieces, CUDA_ROW_IN(cuda_optimized, conv2d, winograd, split_rows,
                                                    "cuda_optimized/conv2d/direct/row_tile",
                                                    "Winograd F(3, 3) for few channels and rows of "
                                                    "four to six taps, transformed in registers")),
              float_spectra(CUDA_ROW_IN(cuda_optimized, conv2d, fft, fused,
                                        "cuda_optimized/conv2d/winograd/fused",
                                        "fused FFT convolution: tiles of 16 to 64 points are "
                                        "transformed in shared memory")),
              float_spectra(
                  tf32(Tf32::parts, CUDA_ROW_IN(cuda_optimized, conv2d, fft, 3xtf32,
                                                "cuda_optimized/conv2d/winograd/3xtf32",
                                                "FFT convolution on tensor cores: complex GEMMs by "
                                                "three real ones (Gauss), in 3xTF32"))),
              needs("sm_80", tf32(Tf32::operands,
                                  CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, mma_tf32,
                                              "cuda_optimized/conv2d/implicit_gemm/mma",
                                              "tensor cores in TF32: mma.sync on NHWC, "
                                              "operands are rounded to TF32"))),
              CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, split_k,
                          "cuda_optimized/conv2d/implicit_gemm/cp_async",
                          "split-K: several blocks share a tile; a second kernel adds the partial "
                          "results in a fixed order"),
              CUDA_ROW(cuda_naive, conv2d, direct_16bit, "cuda_naive/conv2d/direct",
                       "half precision: fp16 or bf16 in memory, FP32 accumulators, one rounding at "
                       "the end"),
              needs("sm_80",
                    tf32(Tf32::operands,
                         CUDA_ROW_IN(cuda_optimized, conv2d, direct, mma_tf32,
                                     "cuda_optimized/conv2d/direct/deinterleaved",
                                     "tensor cores for few channels: mma.sync reads windows "
                                     "from a halo tile in shared memory (TF32)"))),
              needs("sm_80", CUDA_ROW_IN(cuda_optimized, conv2d, direct, mma,
                                         "cuda_optimized/conv2d/direct/mma_tf32",
                                         "tensor cores for few channels in half precision: two "
                                         "adjacent taps fill one register")),
          }),
          advanced({
              needs("sm_90a",
                    tf32(Tf32::operands,
                         CUDA_ROW_IN(cuda_optimized, conv2d, implicit_gemm, wgmma_tf32,
                                     "cuda_optimized/conv2d/implicit_gemm/warp_specialized",
                                     "TMA and wgmma in TF32: a stage holds half of the channels, "
                                     "and NCHW arrays are transposed first"))),
              needs(
                  "sm_90a",
                  winograd(4, tf32(Tf32::parts,
                                   CUDA_ROW_IN(cuda_optimized, conv2d, winograd, 3xtf32,
                                               "cuda_optimized/conv2d/winograd/4x4",
                                               "Winograd on tensor cores: each FP32 multiplication "
                                               "as three in TF32 (3xTF32)")))),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d, hopper, swap_ab,
                      "cuda_optimized/conv2d/implicit_gemm/warp_specialized",
                      "swap-AB: wgmma takes 64 filters as its rows and 256 pixels as its columns")),
              needs("sm_90a",
                    CUDA_ROW_IN(cuda_optimized, conv2d, hopper, cluster_split_k,
                                "cuda_optimized/conv2d/implicit_gemm/halo_tile",
                                "split-K over a cluster: accumulators are exchanged through "
                                "distributed shared memory")),
              needs("sm_90a", CUDA_ROW_IN(cuda_optimized, conv2d, hopper, full_tiles,
                                          "cuda_optimized/conv2d/implicit_gemm/halo_tile",
                                          "full tiles: no padding columns, and both consumer "
                                          "warpgroups share a halo tile")),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized, conv2d, hopper, weight_stationary,
                      "cuda_optimized/conv2d/implicit_gemm/halo_tile",
                      "weight-stationary 1 x 1: each pixel is loaded once for all filters")),
              needs("sm_90a", tf32(Tf32::operands,
                                   CUDA_ROW_IN(cuda_optimized, conv2d, hopper, halo_tile_tf32,
                                               "cuda_optimized/conv2d/implicit_gemm/halo_tile",
                                               "halo-tile reuse in TF32: accumulators are stored "
                                               "directly, without a staging buffer"))),
          }),
      })};
}
