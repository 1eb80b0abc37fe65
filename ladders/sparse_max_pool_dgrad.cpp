#include "ladders/sparse_max_pool_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_max_pool_dgrad_ladder() {
  return {"sparse_max_pool_dgrad",
          "gradient of max pooling over a rulebook with respect to its features",
          [](const Problem& problem) {
            return sparse_max_pool_dgrad_signature(std::get<SparsePoolProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, sparse_max_pool_dgrad, direct, "",
                      "every output gives its gradient to the row that it chose"),
              branch("cpu_reference/sparse_max_pool_dgrad/direct",
                     CPU_ROW(cpu_reference, sparse_max_pool_dgrad, gather,
                             "cpu_reference/sparse_max_pool_dgrad/direct",
                             "every input asks its outputs whether they chose it")),
              CUDA_ROW(cuda_naive, sparse_max_pool_dgrad, scatter,
                       "cpu_reference/sparse_max_pool_dgrad/direct",
                       "one thread an element of dy, which it adds to its winner atomically",
                       /*deterministic=*/false),
              branch("cuda_naive/sparse_max_pool_dgrad/scatter",
                     CUDA_ROW(cuda_optimized, sparse_max_pool_dgrad, output_stationary,
                              "cuda_naive/sparse_max_pool_dgrad/scatter",
                              "every input collects over the mirrored table: no atomics")),
              CUDA_ROW(cuda_optimized, sparse_max_pool_dgrad, vectorized,
                       "cuda_optimized/sparse_max_pool_dgrad/output_stationary",
                       "a thread has four channels, and asks the table once for all of them"),
          }};
}
