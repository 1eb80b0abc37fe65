/// @file row_grid.cpp
/// @brief sparse_to_dense, rung 2: each cell fetches its row, so that x is written once, in order.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/sparse_to_dense/row_grid.cu
///
/// **The idea.** Turn the question round: not "where does this row go?", but "which row is here?".
/// A grid of row numbers, one for each cell, answers it, for all channels:
///
///     rows   -1 -1  0 -1        x  channel 0   . . a0 .      one pass along memory a channel,
///            -1  1 -1 -1                       . b0 . .      zeros and values together
///
/// It is the dense grid of spconv 1.x's rulebooks (cuda_naive/rulebook/dense_grid.cu), used for
/// what it is best at: asked once for each cell, in order.
///
/// **Expect.** x is written once and never read.
/// **Costs.** The grid, 4 bytes a cell: an additional channel's worth of memory.
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
