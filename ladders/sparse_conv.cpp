#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(SparseConvProblem, cpu_reference, sparse_conv, direct)
CPU_RUNG(SparseConvProblem, cpu_reference, sparse_conv, gather_gemm_scatter)
CUDA_RUNG(SparseConvProblem, cuda_naive, sparse_conv, scatter)
CUDA_RUNG(SparseConvProblem, cuda_optimized, sparse_conv, output_stationary)

convladder::Ladder convladder::sparse_conv_ladder() {
  return {
      "sparse_conv",
      "a sparse convolution over a rulebook: y[out] += features[in] * weights[k]",
      [](const Problem& problem) {
        return sparse_conv_signature(std::get<SparseConvProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_conv, direct, "",
                  "pair after pair, as the rulebook lists them"),
          CPU_ROW(cpu_reference, sparse_conv, gather_gemm_scatter,
                  "cpu_reference/sparse_conv/direct",
                  "rows of a tap's pairs copied together, one matrix product, rows added back"),
          CUDA_ROW(cuda_naive, sparse_conv, scatter, "cpu_reference/sparse_conv/direct",
                   "one thread a pair and output channel, which adds to y atomically",
                   /*deterministic=*/false),
          CUDA_ROW(cuda_optimized, sparse_conv, output_stationary, "cuda_naive/sparse_conv/scatter",
                   "every output collects its sum tap by tap in a register: no atomics"),
      }};
}
