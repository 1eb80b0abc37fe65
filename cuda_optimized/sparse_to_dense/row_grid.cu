/// @file row_grid.cu
/// @brief sparse_to_dense, rung 2 on the GPU: one thread a cell, which fetches what belongs there.
///
/// - Before: cuda_naive/sparse_to_dense/scatter.cu (one thread an element of features)
/// - After:  transposed_tiles.cu (features are read in rows, too)
/// - The same maths: cpu_reference/sparse_to_dense/row_grid.cpp
///
/// **The idea.** Of reading and writing, one cannot be in order. A dense tensor is by far the
/// larger side, so let that one be. A grid of row numbers, made first, tells each cell which row it
/// holds, or -1; then threads go along the cells of a plane, and each stores its value or its zero.
///
///     rows        -1  -1   0  -1   1  -1        thread = cell
///     plane c      0   0  a_c  0  b_c  0        all stored, 128 bytes a warp
///
/// **Expect.** x is written once, coalesced, zeros included: no pass that zeroes it. The grid costs
/// 4 bytes a cell to write and 4 * C to read, which the L2 cache serves where a sample's grid fits.
/// **Costs.** Loads of features are not coalesced: neighbouring cells have far rows. They are few,
/// but each fetches a sector of 32 bytes for one channel, and the other seven channels come by when
/// their planes' turn comes. Workspace: 4 bytes a cell.
#include "core/rung.hpp"
#include "core/sparse_pool_problem.hpp"
#include "cuda_optimized/sparse_to_dense/row_numbers.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_to_dense {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More cells than these take: threads stride.

/// features [sites][C], rows [batch][cells], x [batch][C][cells]. Any grid (cells, planes).
__global__ void fill_planes(SparseToDenseProblem problem, const float* features,
                            const std::int32_t* rows, float* x) {
  const std::int64_t C = problem.C, cells = cells_of(problem);
  const std::int64_t grid_cells = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t plane = blockIdx.y; plane < problem.grid.batch * C; plane += gridDim.y) {
    const std::int64_t n = plane / C, c = plane % C;
    std::int64_t cell = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    for (; cell < cells; cell += grid_cells) {
      const std::int64_t row = rows[n * cells + cell];
      x[plane * cells + cell] = row < 0 ? 0.0f : features[row * C + c];
    }
  }
}

void run(const SparseToDenseProblem& problem, const Arguments& arrays) {
  auto* rows = arrays.workspace<std::int32_t>();
  launch_row_numbers(problem, arrays.in<std::int32_t>("coords"), rows);
  const std::int64_t planes = std::int64_t{problem.grid.batch} * problem.C;
  const dim3 grid(blocks_for(cells_of(problem), kThreads, kMaxBlocks),
                  blocks_for(planes, 1, kMaxGridYZ));
  launch(fill_planes, {grid, kThreads}, problem, arrays.in<float>("features"), rows,
         arrays.out<float>("x"));
}

}  // namespace

Implementation<SparseToDenseProblem> row_grid() {
  return {.workspace_bytes = row_numbers_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_to_dense
