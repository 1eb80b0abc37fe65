#include "ladders/sparse_wgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_wgrad_ladder() {
  return {
      "sparse_wgrad",
      "gradient of a sparse convolution with respect to its weights",
      [](const Problem& problem) {
        return sparse_wgrad_signature(std::get<SparseConvProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_wgrad, direct, "",
                  "pair after pair, as the rulebook lists them"),
          branch(
              "cpu_reference/sparse_wgrad/direct",
              CPU_ROW(cpu_reference, sparse_wgrad, gather_gemm_scatter,
                      "cpu_reference/sparse_wgrad/direct",
                      "both rows of a tap's pairs copied together, then one matrix product a tap")),
          CUDA_ROW(cuda_naive, sparse_wgrad, scatter, "cpu_reference/sparse_wgrad/direct",
                   "one thread a pair and output channel, which adds to dw atomically",
                   /*deterministic=*/false),
          branch(
              "cuda_naive/sparse_wgrad/scatter",
              CUDA_ROW(
                  cuda_optimized, sparse_wgrad, output_stationary,
                  "cuda_naive/sparse_wgrad/scatter",
                  "a block owns a tile of a tap's gradient and goes through its pairs in order")),
          branch(
              "cuda_optimized/sparse_wgrad/output_stationary",
              CUDA_ROW(
                  cuda_optimized, sparse_wgrad, split_k_atomics,
                  "cuda_optimized/sparse_wgrad/output_stationary",
                  "parts of equal length for all blocks, in tiles of registers; atomics add them",
                  /*deterministic=*/false)),
          CUDA_ROW(cuda_optimized, sparse_wgrad, split_k,
                   "cuda_optimized/sparse_wgrad/split_k_atomics",
                   "parts go to a workspace, and a second launch adds them in one order"),
          branch("cuda_optimized/sparse_wgrad/split_k",
                 tf32(Tf32::operands,
                      CUDA_ROW(
                          cuda_optimized, sparse_wgrad, split_k_mma,
                          "cuda_optimized/sparse_wgrad/split_k",
                          "the same on tensor cores, both factors transposed as they are loaded"))),
          branch("cuda_optimized/sparse_wgrad/split_k_mma",
                 tf32(Tf32::operands,
                      CUDA_ROW(cuda_optimized, sparse_wgrad, split_k_wgmma,
                               "cuda_optimized/sparse_wgrad/split_k_mma",
                               "warps that gather beside one warpgroup that multiplies; parts take "
                               "turns at the steps of a tap"))),
      }};
}
