/// @file scatter.cu
/// @brief Scatter: one thread stores one channel of one row.
///
/// - Before: cpu_reference/sparse_to_dense/direct.cpp
/// - After: cuda_optimized/sparse_to_dense/row_grid.cu
///
/// **The idea.** x is zeroed, then every element of features is copied to its cell. Neighbouring
/// threads have neighbouring channels: a warp reads 128 contiguous bytes and writes 32 floats, each
/// to a different plane.
///
///     thread  (row, c = 0) (row, 1) (row, 2) ...
///     reads        [ a0       a1       a2  ...  ]         one cache line
///     writes    plane 0   plane 1   plane 2   ...         one sector each, 4 bytes of it
///
/// **Expect.** Zeroing runs at memory bandwidth. The scatter fills 4 bytes of every 32-byte sector
/// that it writes, so its traffic is at least eight times its useful bytes. No two threads write
/// the same element, because the sites are distinct.
/// @expect sectors_per_request.x.store 32, 4 bytes of each
/// @expect lanes_per_output.x.store 512 / 1728 = 0.296, sites of cells
/// @expect loads_per_output.coords 4 * 512 / 1728 = 1.185, each thread decodes its site
/// **Costs.** Each thread decodes the site of its row again. If most cells are empty, the zeroing
/// dominates, and the rung is close to optimal.
/// **Try.** Assign neighbouring rows instead of channels to neighbouring threads. Which accesses
/// are coalesced if the sites are sorted? And if they are not?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_to_dense {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more elements, a thread copies several
                                              ///< (grid-stride loop).

/// features [sites][C], coords [sites][1 + ndim], x [batch][C][cells], which must be zero. Launch
/// with any one-dimensional grid.
__global__ void sparse_to_dense_scatter(SparseToDenseProblem problem, const float* features,
                                        const std::int32_t* coords, float* x) {
  const RulebookProblem& grid = problem.grid;
  const std::int64_t C = problem.C, cells = cells_of(problem);
  for (const std::int64_t i : grid_stride(grid.sites * C)) {
    const std::int64_t row = i / C, c = i % C;
    const std::int64_t key = key_of(grid, grid.shape, site_of(grid, coords, row));
    const std::int64_t n = key / cells, cell = key % cells;
    x[(n * C + c) * cells + cell] = features[i];
  }
}

void run(const SparseToDenseProblem& problem, const SparseToDenseArrays& arrays, const Context&) {
  float* x = arrays.x;
  const std::int64_t elements = problem.grid.batch * cells_of(problem) * problem.C;
  check(
      cudaMemsetAsync(x, 0, static_cast<std::size_t>(elements) * sizeof(float), current_stream()));
  const std::int64_t copies = std::int64_t{problem.grid.sites} * problem.C;
  launch(sparse_to_dense_scatter, {blocks_for(copies, kThreads, kMaxBlocks), kThreads}, problem,
         arrays.features, arrays.coords, x);
}

}  // namespace

extern const Implementation<SparseToDenseArrays> scatter = {
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_to_dense
