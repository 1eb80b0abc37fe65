/// @file row_grid.cpp
/// @brief Grid of row numbers: each cell reads its row; x is written once, in order.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/sparse_to_dense/row_grid.cu
///
/// **The idea.** The loop runs over cells instead of rows. A grid of row numbers, one per cell,
/// gives the row of each cell, for all channels:
///
///     rows   -1 -1  0 -1        x  channel 0   . . a0 .      one pass along memory per channel,
///            -1  1 -1 -1                       . b0 . .      zeros and values together
///
/// It is the dense grid of spconv 1.x's rulebooks (cuda_naive/rulebook/dense_grid.cu), read once
/// for each cell, in order.
///
/// **Expect.** x is written once and never read.
/// **Costs.** The grid, 4 bytes per cell: as much memory as one more channel.
#include <vector>

#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::cpu_reference::sparse_to_dense {
namespace {

/// features [sites][C], coords [sites][1 + ndim], x [batch][C][cells].
void run(const SparseToDenseProblem& problem, const SparseToDenseArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  const auto* coords = arrays.coords;
  auto* x = arrays.x;
  const RulebookProblem& grid = problem.grid;
  const std::int64_t C = problem.C, cells = cells_of(problem);

  std::vector<std::int32_t> rows(static_cast<std::size_t>(grid.batch * cells), -1);
  for (std::int32_t row = 0; row < grid.sites; ++row) {
    const std::int64_t key = key_of(grid, grid.shape, site_of(grid, coords, row));
    rows[static_cast<std::size_t>(key)] = row;
  }
  for (std::int64_t n = 0; n < grid.batch; ++n) {
    const std::int32_t* rows_n = rows.data() + n * cells;
    for (std::int64_t c = 0; c < C; ++c) {
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        const std::int64_t row = rows_n[cell];
        *x++ = row < 0 ? 0.0f : features[row * C + c];
      }
    }
  }
}

}  // namespace

extern const Implementation<SparseToDenseArrays> row_grid = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_to_dense
