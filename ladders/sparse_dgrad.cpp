#include "ladders/sparse_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_dgrad_ladder() {
  return {
      "sparse_dgrad",
      "gradient of a sparse convolution with respect to its features",
      [](const Problem& problem) {
        return sparse_dgrad_signature(std::get<SparseConvProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_dgrad, direct, "",
                  "pair after pair, as the rulebook lists them"),
          branch("cpu_reference/sparse_dgrad/direct",
                 CPU_ROW(
                     cpu_reference, sparse_dgrad, gather_gemm_scatter,
                     "cpu_reference/sparse_dgrad/direct",
                     "rows of a tap's pairs copied together, one matrix product, rows added back")),
          CUDA_ROW(cuda_naive, sparse_dgrad, scatter, "cpu_reference/sparse_dgrad/direct",
                   "one thread a pair and input channel, which adds to dx atomically",
                   /*deterministic=*/false),
          branch("cuda_naive/sparse_dgrad/scatter",
                 CUDA_ROW(cuda_optimized, sparse_dgrad, output_stationary,
                          "cuda_naive/sparse_dgrad/scatter",
                          "the forward kernel over the mirrored table, with transposed weights")),
          branch("cuda_optimized/sparse_dgrad/output_stationary",
                 CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm,
                          "cuda_optimized/sparse_dgrad/output_stationary",
                          "tiles of rows in the order of their masks, gathered while multiplied")),
          branch("cuda_optimized/sparse_dgrad/implicit_gemm",
                 CUDA_ROW(cuda_optimized, sparse_dgrad, mirrored_table,
                          "cuda_optimized/sparse_dgrad/implicit_gemm",
                          "under subm the forward pass' table, with the weights of opposite taps")),
          CUDA_ROW(
              cuda_optimized, sparse_dgrad, implicit_gemm_cp_async,
              "cuda_optimized/sparse_dgrad/output_stationary",
              "the forward pass' newest kernel in its place, under subm over the forward table"),
          branch("cuda_optimized/sparse_dgrad/implicit_gemm",
                 tf32(Tf32::operands, CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm_mma,
                                               "cuda_optimized/sparse_dgrad/implicit_gemm",
                                               "implicit_gemm on tensor cores: W^T is what "
                                               "mma.sync calls a column factor"))),
          branch(
              "cuda_optimized/sparse_dgrad/implicit_gemm_mma",
              tf32(
                  Tf32::operands,
                  CUDA_ROW(
                      cuda_optimized, sparse_dgrad, implicit_gemm_producers,
                      "cuda_optimized/sparse_dgrad/implicit_gemm_mma",
                      "the forward pass' producer warps and wgmma, with the weights as they lie"))),
          tf32(Tf32::operands,
               CUDA_ROW(cuda_optimized, sparse_dgrad, implicit_gemm_producers_sorted,
                        "cuda_optimized/sparse_dgrad/implicit_gemm_producers",
                        "any table: segments of rows are sorted in the launch that puts weights in "
                        "place")),
      }};
}
