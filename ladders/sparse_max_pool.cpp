#include "ladders/sparse_max_pool.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_max_pool_ladder() {
  return {
      "sparse_max_pool",
      "max pooling over a rulebook: y[out] = the largest features[in], and which in it was",
      [](const Problem& problem) {
        return sparse_max_pool_signature(std::get<SparsePoolProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_max_pool, direct, "",
                  "pair after pair, the larger feature stays"),
          CUDA_ROW(cuda_naive, sparse_max_pool, scatter, "cpu_reference/sparse_max_pool/direct",
                   "one thread a pair and channel; an atomic maximum of value and tap in 64 bits"),
          branch("cuda_naive/sparse_max_pool/scatter",
                 CUDA_ROW(cuda_optimized, sparse_max_pool, output_stationary,
                          "cuda_naive/sparse_max_pool/scatter",
                          "every output looks at its candidates tap by tap: no atomics")),
          CUDA_ROW(cuda_optimized, sparse_max_pool, vectorized,
                   "cuda_optimized/sparse_max_pool/output_stationary",
                   "a thread has four channels, and asks the table once for all of them"),
          CUDA_ROW(cuda_optimized, sparse_max_pool, masked_taps,
                   "cuda_optimized/sparse_max_pool/vectorized",
                   "a row's mask says which entries of the table to read"),
      }};
}
