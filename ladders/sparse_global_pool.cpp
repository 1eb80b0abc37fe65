#include "ladders/sparse_global_pool.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_global_pool_ladder() {
  return {"sparse_global_pool",
          "global pooling: the maximum or the mean of all sites of each image",
          [](const Problem& problem) {
            return sparse_global_pool_signature(std::get<SparseGlobalPoolProblem>(problem));
          },
          in_order({
              spine("",
                    {
                        CPU_ROW(cpu_reference, sparse_global_pool, direct, "",
                                "definition: each row is reduced into the result of its image"),
                        CUDA_ROW(cuda_naive, sparse_global_pool, direct,
                                 "cpu_reference/sparse_global_pool/direct",
                                 "naive CUDA: one thread per image and channel visits all rows"),
                        CUDA_ROW(cuda_optimized, sparse_global_pool, row_parts,
                                 "cuda_naive/sparse_global_pool/direct",
                                 "two-pass reduction: blocks reduce parts of the rows by a tree, a "
                                 "second launch combines the parts"),
                    }),
          })};
}
