#include "ladders/sparse_wgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_wgrad_ladder() {
  return {
      "sparse_wgrad", "gradient of a sparse convolution with respect to its weights",
      [](const Problem& problem) {
        return sparse_wgrad_signature(std::get<SparseConvProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, sparse_wgrad, direct, "",
                          "definition: the pairs of the rulebook are processed one by one"),
                  CUDA_ROW(cuda_naive, sparse_wgrad, scatter, "cpu_reference/sparse_wgrad/direct",
                           "scatter: one thread per pair and output channel, with atomic additions",
                           /*deterministic=*/false),
                  CUDA_ROW(cuda_optimized, sparse_wgrad, output_stationary,
                           "cuda_naive/sparse_wgrad/scatter",
                           "output-stationary: a block owns a tile of one tap's gradient and "
                           "visits its pairs in order"),
                  CUDA_ROW(cuda_optimized, sparse_wgrad, split_k_atomics,
                           "cuda_optimized/sparse_wgrad/output_stationary",
                           "split-K with atomics: each block gets the same number of pairs and a "
                           "register tile",
                           /*deterministic=*/false),
                  CUDA_ROW(cuda_optimized, sparse_wgrad, split_k,
                           "cuda_optimized/sparse_wgrad/split_k_atomics",
                           "deterministic split-K: partial results go to a workspace, a second "
                           "launch adds them in order"),
                  needs("sm_80",
                        tf32(Tf32::operands, CUDA_ROW(cuda_optimized, sparse_wgrad, split_k_mma,
                                                      "cuda_optimized/sparse_wgrad/split_k",
                                                      "tensor cores: mma.sync, both operands are "
                                                      "transposed as they are loaded"))),
                  needs("sm_90a",
                        tf32(Tf32::operands, CUDA_ROW(cuda_optimized, sparse_wgrad, split_k_wgmma,
                                                      "cuda_optimized/sparse_wgrad/split_k_mma",
                                                      "warp specialization: producer warps gather "
                                                      "for one wgmma consumer warpgroup"))),
              }),
          alternatives({
              CPU_ROW(cpu_reference, sparse_wgrad, gather_gemm_scatter,
                      "cpu_reference/sparse_wgrad/direct",
                      "gather and GEMM: both rows of a tap's pairs are gathered, then one GEMM per "
                      "tap"),
          }),
      })};
}
