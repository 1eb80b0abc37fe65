#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(SparseConvProblem, cpu_reference, sparse_dgrad, direct)
CPU_RUNG(SparseConvProblem, cpu_reference, sparse_dgrad, gather_gemm_scatter)
CUDA_RUNG(SparseConvProblem, cuda_naive, sparse_dgrad, scatter)
CUDA_RUNG(SparseConvProblem, cuda_optimized, sparse_dgrad, output_stationary)

convladder::Ladder convladder::sparse_dgrad_ladder() {
  return {"sparse_dgrad",
          "gradient of a sparse convolution with respect to its features",
          [](const Problem& problem) {
            return sparse_dgrad_signature(std::get<SparseConvProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, sparse_dgrad, direct, "",
                      "pair after pair, as the rulebook lists them"),
              CPU_ROW(cpu_reference, sparse_dgrad, gather_gemm_scatter,
                      "cpu_reference/sparse_dgrad/direct",
                      "rows of a tap's pairs copied together, one matrix product, rows added back"),
              CUDA_ROW(cuda_naive, sparse_dgrad, scatter, "cpu_reference/sparse_dgrad/direct",
                       "one thread a pair and input channel, which adds to dx atomically",
                       /*deterministic=*/false),
              CUDA_ROW(cuda_optimized, sparse_dgrad, output_stationary,
                       "cuda_naive/sparse_dgrad/scatter",
                       "the forward kernel over the mirrored table, with transposed weights"),
          }};
}
