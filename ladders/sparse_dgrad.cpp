#include "ladders/sparse_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_dgrad_ladder() {
  return {
      "sparse_dgrad", "gradient of a sparse convolution with respect to its features",
      [](const Problem& problem) {
        return sparse_dgrad_signature(std::get<SparseConvProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, sparse_dgrad, direct, "",
                          "definition: the pairs of the rulebook are processed one by one"),
                  CUDA_ROW(cuda_naive, sparse_dgrad, scatter, "cpu_reference/sparse_dgrad/direct",
                           "scatter: one thread per pair and input channel, with atomic additions",
                           /*deterministic=*/false),
                  CUDA_ROW(cuda_optimized, sparse_dgrad, output_stationary,
                           "cuda_naive/sparse_dgrad/scatter",
                           "output-stationary: the forward kernel over the mirrored table, with "
                           "transposed weights"),
                  CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm,
                           "cuda_optimized/sparse_dgrad/output_stationary",
                           "implicit GEMM: tiles of rows sorted by mask"),
                  needs(
                      "sm_80",
                      tf32(
                          Tf32::operands,
                          CUDA_ROW(
                              cuda_optimized, sparse_dgrad, implicit_gemm_mma,
                              "cuda_optimized/sparse_dgrad/implicit_gemm",
                              "tensor cores: mma.sync reads the transposed weights as operand B"))),
                  needs("sm_90a",
                        tf32(Tf32::operands,
                             CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm_warp_specialized,
                                      "cuda_optimized/sparse_dgrad/implicit_gemm_mma",
                                      "warp specialization: producer warps gather, consumer "
                                      "warpgroups multiply; weights in their own layout"))),
              }),
          alternatives({
              CPU_ROW(cpu_reference, sparse_dgrad, gather_gemm_scatter,
                      "cpu_reference/sparse_dgrad/direct",
                      "gather, GEMM, scatter: one GEMM for the gathered rows of each tap"),
              CUDA_ROW(
                  cuda_optimized, sparse_dgrad, mirrored_table,
                  "cuda_optimized/sparse_dgrad/implicit_gemm",
                  "submanifold: the table of the forward pass, with the weights of opposite taps"),
              CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm_cp_async,
                       "cuda_optimized/sparse_dgrad/output_stationary",
                       "cp.async: the forward kernel, under subm over the forward table"),
          }),
          advanced({
              needs("sm_90a",
                    tf32(Tf32::operands,
                         CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm_fused_sort,
                                  "cuda_optimized/sparse_dgrad/implicit_gemm_warp_specialized",
                                  "fused sort: unsorted tables are sorted in segments by the "
                                  "launch that packs the weights"))),
          }),
      })};
}
