/// @file row_numbers.cuh
/// @brief The grid of row numbers: which row of features belongs to each cell of a dense tensor.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_to_dense {

namespace row_numbers {

inline constexpr int kThreads = 256;                 ///< Of a block.
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more rows, threads stride.

/// coords [sites][1 + ndim], rows [batch][cells], all -1. Any one-dimensional grid.
static __global__ void number_cells(RulebookProblem grid, const std::int32_t* coords,
                                    std::int32_t* rows) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < grid.sites; row += grid_threads)
    rows[key_of(grid, grid.shape, site_of(grid, coords, row))] = static_cast<std::int32_t>(row);
}

}  // namespace row_numbers

/// Bytes of rows [batch][cells].
inline std::size_t row_numbers_bytes(const SparseToDenseProblem& problem) {
  return static_cast<std::size_t>(problem.grid.batch * cells_of(problem)) * sizeof(std::int32_t);
}

/// Writes to rows [batch][cells] the row of `coords` that lies in each cell, or -1.
inline void launch_row_numbers(const SparseToDenseProblem& problem, const std::int32_t* coords,
                               std::int32_t* rows) {
  check(cudaMemsetAsync(rows, 0xff, row_numbers_bytes(problem)));  // -1
  launch(row_numbers::number_cells,
         {blocks_for(problem.grid.sites, row_numbers::kThreads, row_numbers::kMaxBlocks),
          row_numbers::kThreads},
         problem.grid, coords, rows);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_to_dense
