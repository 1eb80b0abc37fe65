#include "ladders/sparse_avg_pool.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_avg_pool_ladder() {
  return {
      "sparse_avg_pool",
      "average pooling over a rulebook: y[out] = the mean of the features[in] that exist",
      [](const Problem& problem) {
        return sparse_avg_pool_signature(std::get<SparsePoolProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_avg_pool, direct, "",
                  "row by row, the sum of the candidates over their number"),
          CUDA_ROW(cuda_naive, sparse_avg_pool, direct, "cpu_reference/sparse_avg_pool/direct",
                   "one thread a row and channel: sum and count in registers, no atomics"),
          CUDA_ROW(cuda_optimized, sparse_avg_pool, vectorized, "cuda_naive/sparse_avg_pool/direct",
                   "a thread has four channels, reads the table and counts once for all of them"),
      }};
}
