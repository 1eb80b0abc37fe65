/// @file direct.cpp
/// @brief Definition of sparse_to_dense: the tensor is filled with zeros, then each row is written
/// to its cell.
///
/// - After: cuda_naive/sparse_to_dense/scatter.cu, row_grid.cpp
/// - On the GPU: cuda_naive/sparse_to_dense/scatter.cu
/// - The semantics: core/sparse_pool_problem.hpp
///
/// **The idea.** A dense tensor has a value for each channel of each cell; a sparse one lists the
/// occupied cells. The conversion is a scatter and a transposition: the channels of a row are
/// adjacent, those of a cell are one grid apart.
///
///     features  row 0  [ a0 a1 a2 ]  at (y 0, x 2)        x  channel 0   . . a0 .
///               row 1  [ b0 b1 b2 ]  at (y 1, x 1)                       . b0 . .
///                                                            channel 1   . . a1 .
///                                                                        . b1 . .
///                                                            ...
///
/// Detectors do this after their sparse layers, on a coarse grid, and then fold the vertical axis
/// into the channels (Yan, Mao and Li, "SECOND: Sparsely Embedded Convolutional Detection", 2018).
///
/// **Expect.** batch * C * cells zeros, then sites * C copies.
/// **Costs.** Each copy touches a separate cache line; occupied cells are written twice.
#include <algorithm>

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

  std::fill_n(x, grid.batch * C * cells, 0.0f);
  for (std::int64_t row = 0; row < grid.sites; ++row) {
    const Site site = site_of(grid, coords, row);
    std::int64_t cell = 0;
    for (int axis = 0; axis < grid.ndim; ++axis) cell = cell * grid.shape[axis] + site.at[axis];
    for (std::int64_t c = 0; c < C; ++c)
      x[(site.batch * C + c) * cells + cell] = features[row * C + c];
  }
}

}  // namespace

extern const Implementation<SparseToDenseArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_to_dense
