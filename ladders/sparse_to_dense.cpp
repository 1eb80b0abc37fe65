#include "ladders/sparse_to_dense.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_to_dense_ladder() {
  return {
      "sparse_to_dense",
      "rows of features to a dense tensor, zeros where no site is",
      [](const Problem& problem) {
        return sparse_to_dense_signature(std::get<SparseToDenseProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_to_dense, direct, "",
                  "zeros everywhere, then each row to its cell"),
          branch(
              "cpu_reference/sparse_to_dense/direct",
              CPU_ROW(
                  cpu_reference, sparse_to_dense, row_grid, "cpu_reference/sparse_to_dense/direct",
                  "a grid of row numbers: each cell fetches its row, x is written once, in order")),
          CUDA_ROW(cuda_naive, sparse_to_dense, scatter, "cpu_reference/sparse_to_dense/direct",
                   "one thread stores one channel of one row, in a plane of its own"),
          branch(
              "cuda_naive/sparse_to_dense/scatter",
              CUDA_ROW(cuda_optimized, sparse_to_dense, row_grid,
                       "cuda_naive/sparse_to_dense/scatter",
                       "one thread a cell: every store is coalesced, and none is a zero before")),
          CUDA_ROW(cuda_optimized, sparse_to_dense, transposed_tiles,
                   "cuda_optimized/sparse_to_dense/row_grid",
                   "32 cells by 32 channels turned in shared memory: both sides coalesced"),
      }};
}
