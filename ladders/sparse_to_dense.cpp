#include "ladders/sparse_to_dense.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_to_dense_ladder() {
  return {
      "sparse_to_dense",
      "densification: rows of features are written to a dense tensor, with zeros at empty cells",
      [](const Problem& problem) {
        return sparse_to_dense_signature(std::get<SparseToDenseProblem>(problem));
      },
      in_order({
          spine("",
                {
                    CPU_ROW(cpu_reference, sparse_to_dense, direct, "",
                            "definition: the tensor is filled with zeros, then each row is written "
                            "to its cell"),
                    CUDA_ROW(cuda_naive, sparse_to_dense, scatter,
                             "cpu_reference/sparse_to_dense/direct",
                             "scatter: one thread stores one channel of one row"),
                    CUDA_ROW(cuda_optimized, sparse_to_dense, row_grid,
                             "cuda_naive/sparse_to_dense/scatter",
                             "gather: one thread per cell, coalesced stores, no separate memset"),
                    CUDA_ROW(cuda_optimized, sparse_to_dense, transposed_tiles,
                             "cuda_optimized/sparse_to_dense/row_grid",
                             "shared-memory transpose: 32 cells x 32 channels, coalesced loads and "
                             "stores"),
                }),
          alternatives({
              CPU_ROW(cpu_reference, sparse_to_dense, row_grid,
                      "cpu_reference/sparse_to_dense/direct",
                      "grid of row numbers: each cell reads its row; x is written once, in order"),
          }),
      })};
}
