/// @file row_grid.cu
/// @brief sparse_to_dense: gather by a row grid; one thread per cell writes its value or zero,
/// coalesced.
///
/// - Before: cuda_naive/sparse_to_dense/scatter.cu
/// - After: transposed_tiles.cu
/// - The same maths: cpu_reference/sparse_to_dense/row_grid.cpp
///
/// **The idea.** Either reads or writes can be coalesced. The dense tensor is by far the larger
/// side, so the writes are. A first kernel fills a grid with the row number of each cell, or -1.
/// Then the threads of a warp take neighbouring cells of a plane, and each stores its value or
/// zero.
///
///     rows        -1  -1   0  -1   1  -1        thread = cell
///     plane c      0   0  a_c  0  b_c  0        all stored, 128 bytes a warp
///
/// A thread has one cell of 16 planes and loads the row number once for all of them.
///
/// **Expect.** x is written once, coalesced, including zeros: no separate pass zeroes it. The grid
/// costs 4 bytes per cell to write and C / 4 bytes to read, from L2 if a sample's grid fits there.
/// Predicted on an H200 for eighth-64, whose x has 92 MB: 45 us.
/// @expect sectors_per_request.x.store 4, coalesced
/// @expect lanes_per_output.x.store 1, zeros included
/// @expect loads_per_output.workspace 2 / 32 = 0.0625, a cell is read for 16 channels
/// @expect loads_per_output.coords 4 * 512 / (1728 * 32) = 0.037, once a site
/// **Costs.** Loads of features are not coalesced: a load of one channel fetches 32 bytes, whose
/// other seven channels serve later planes. Workspace: 4 bytes per cell.
/// **Try.** Set kPlanes to 1, then to 64. How many blocks are there?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_to_dense {
namespace {

constexpr int kThreads = 256;
constexpr int kPlanes = 16;                   ///< Planes that a thread writes for a cell.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< cells.

/// coords [sites][1 + ndim], rows [batch][cells], all -1. Any one-dimensional grid.
__global__ void sparse_to_dense_row_grid_number_cells(RulebookProblem grid,
                                                      const std::int32_t* coords,
                                                      std::int32_t* rows) {
  for (const std::int64_t row : grid_stride(grid.sites))
    rows[key_of(grid, grid.shape, site_of(grid, coords, row))] = static_cast<std::int32_t>(row);
}

/// features [sites][C], rows [batch][cells], x [batch][C][cells]. Any grid (cells, parts of kPlanes
/// planes of a sample).
__global__ void sparse_to_dense_row_grid_fill_planes(SparseToDenseProblem problem,
                                                     const float* features,
                                                     const std::int32_t* rows, float* x) {
  const std::int64_t C = problem.C, cells = cells_of(problem);
  const int parts = ceil_div(problem.C, kPlanes);
  for (std::int64_t part = blockIdx.y; part < std::int64_t{problem.grid.batch} * parts;
       part += gridDim.y) {
    const std::int64_t n = part / parts, c0 = (part - n * parts) * kPlanes;
    const std::int64_t end = min(c0 + kPlanes, C);
    for (const std::int64_t cell : grid_stride(cells)) {
      const std::int64_t row = rows[n * cells + cell];
      for (std::int64_t c = c0; c < end; ++c) {
        const std::int64_t plane = n * C + c;
        x[plane * cells + cell] = row < 0 ? 0.0f : features[row * C + c];
      }
    }
  }
}

/// Bytes of rows [batch][cells].
std::size_t workspace_bytes(const SparseToDenseProblem& problem) {
  return static_cast<std::size_t>(problem.grid.batch * cells_of(problem)) * sizeof(std::int32_t);
}

void run(const SparseToDenseProblem& problem, const SparseToDenseArrays& arrays,
         const Context& context) {
  auto* rows = context.workspace_as<std::int32_t>();
  check(cudaMemsetAsync(rows, 0xff, workspace_bytes(problem), current_stream()));  // -1
  launch(sparse_to_dense_row_grid_number_cells,
         {blocks_for(problem.grid.sites, kThreads, kMaxBlocks), kThreads}, problem.grid,
         arrays.coords, rows);
  const std::int64_t parts = std::int64_t{problem.grid.batch} * ceil_div(problem.C, kPlanes);
  const dim3 grid(blocks_for(cells_of(problem), kThreads, kMaxBlocks),
                  blocks_for(parts, 1, kMaxGridYZ));
  launch(sparse_to_dense_row_grid_fill_planes, {grid, kThreads}, problem, arrays.features, rows,
         arrays.x);
}

}  // namespace

extern const Implementation<SparseToDenseArrays> row_grid = {
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_to_dense
