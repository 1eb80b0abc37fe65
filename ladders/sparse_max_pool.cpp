#include "ladders/sparse_max_pool.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_max_pool_ladder() {
  return {
      "sparse_max_pool",
      "max pooling over a rulebook: y[out] = the largest features[in], and the index of that input "
      "row",
      [](const Problem& problem) {
        return sparse_max_pool_signature(std::get<SparsePoolProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(
                      cpu_reference, sparse_max_pool, direct, "",
                      "definition: pairs are processed one by one, and the larger feature is kept"),
                  CUDA_ROW(cuda_naive, sparse_max_pool, scatter,
                           "cpu_reference/sparse_max_pool/direct",
                           "scatter: one thread per pair and channel, atomic maximum of value and "
                           "tap in 64 bits"),
                  CUDA_ROW(cuda_optimized, sparse_max_pool, output_stationary,
                           "cuda_naive/sparse_max_pool/scatter",
                           "output-stationary: each output visits its candidates, without atomics"),
                  CUDA_ROW(cuda_optimized, sparse_max_pool, vectorized,
                           "cuda_optimized/sparse_max_pool/output_stationary",
                           "float4: a thread computes four channels with one table look-up"),
                  CUDA_ROW(cuda_optimized, sparse_max_pool, masked_taps,
                           "cuda_optimized/sparse_max_pool/vectorized",
                           "tap masks: a bit mask per row selects the table entries to read"),
              }),
      })};
}
