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
      in_order({
          spine(
              "",
              {
                  CPU_ROW(
                      cpu_reference, sparse_avg_pool, direct, "",
                      "definition: the sum of the candidates of each row, divided by their number"),
                  CUDA_ROW(
                      cuda_naive, sparse_avg_pool, direct, "cpu_reference/sparse_avg_pool/direct",
                      "naive CUDA: one thread per row and channel, sum and count in registers"),
                  CUDA_ROW(cuda_optimized, sparse_avg_pool, vectorized,
                           "cuda_naive/sparse_avg_pool/direct",
                           "float4: a thread computes four channels with one table look-up and one "
                           "count"),
              }),
      })};
}
