#include "ladders/sparse_max_pool_dgrad.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_max_pool_dgrad_ladder() {
  return {"sparse_max_pool_dgrad",
          "gradient of max pooling over a rulebook with respect to its features",
          [](const Problem& problem) {
            return sparse_max_pool_dgrad_signature(std::get<SparsePoolProblem>(problem));
          },
          in_order({
              spine("",
                    {
                        CPU_ROW(cpu_reference, sparse_max_pool_dgrad, direct, "",
                                "definition: each output adds its gradient to the input row that "
                                "it selected"),
                        CUDA_ROW(cuda_naive, sparse_max_pool_dgrad, scatter,
                                 "cpu_reference/sparse_max_pool_dgrad/direct",
                                 "scatter: one thread per element of dy, with an atomic addition",
                                 /*deterministic=*/false),
                        CUDA_ROW(cuda_optimized, sparse_max_pool_dgrad, output_stationary,
                                 "cuda_naive/sparse_max_pool_dgrad/scatter",
                                 "stationary dx: each input accumulates over the mirrored table, "
                                 "without atomics"),
                        CUDA_ROW(cuda_optimized, sparse_max_pool_dgrad, vectorized,
                                 "cuda_optimized/sparse_max_pool_dgrad/output_stationary",
                                 "float4: a thread computes four channels with one table look-up"),
                    }),
              alternatives({
                  CPU_ROW(cpu_reference, sparse_max_pool_dgrad, gather,
                          "cpu_reference/sparse_max_pool_dgrad/direct",
                          "gather: each input checks which of its outputs selected it"),
              }),
          })};
}
