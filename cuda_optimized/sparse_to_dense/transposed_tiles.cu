/// @file transposed_tiles.cu
/// @brief sparse_to_dense: shared-memory transposition of 32 cells x 32 channels; both sides
/// coalesce.
///
/// - Before: row_grid.cu
/// - The same maths: cpu_reference/sparse_to_dense/row_grid.cpp
///
/// **The idea.** As in any tiled transposition, a block reads into shared memory along one axis and
/// writes from it along the other. A warp reads 32 channels of one row where its cell has a row,
/// and later writes 32 cells of one channel.
///
///     features               tile                   x, 32 cells of each plane
///     row 7: a0 a1 a2 ...    cell 2: a0 a1 a2 ...   plane 0:  .  .  a0 .  b0 .
///     row 3: b0 b1 b2 ...    cell 4: b0 b1 b2 ...   plane 1:  .  .  a1 .  b1 .
///                            others: 0  0  0  ...   plane 2:  .  .  a2 .  b2 .
///
/// Rows of the tile are 33 floats apart, so the 32 lanes that read a column access 32 different
/// banks (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009).
///
/// **Expect.** Both sides are coalesced: a row's 32 channels are 128 bytes, read once. A cell's row
/// number is read once per 32 channels. An empty cell needs no load of features. Predicted on an
/// H200 for eighth-64: 40 us.
/// @expect sectors_per_request.features.load 4, coalesced
/// @expect sectors_per_request.x.store 4, coalesced
/// @expect sectors_per_request.workspace.load 1, a cell's row for 32 channels
/// @expect barriers_per_block 2
/// @expect excess.shared.load 0
/// **Costs.** Two barriers per tile. Zeros of empty cells pass through shared memory, too; in
/// eighth-64 one cell in 24 has a row. A tile spans 32 channels even if there are 3.
/// **Try.** Store the zeros of empty tiles directly. How many tiles of a LiDAR sweep are empty?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_to_dense {
namespace {

constexpr int kTile = 32;      ///< Cells, and channels, of a tile: the lanes of a warp.
constexpr int kHeight = 8;     ///< Warps of a block; each takes every eighth cell, then channel.
constexpr int kThreads = 256;  ///< Of sparse_to_dense_transposed_tiles_number_cells().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< rows or tiles.

/// coords [sites][1 + ndim], rows [batch][cells], all -1. Any one-dimensional grid.
__global__ void sparse_to_dense_transposed_tiles_number_cells(RulebookProblem grid,
                                                              const std::int32_t* coords,
                                                              std::int32_t* rows) {
  for (const std::int64_t row : grid_stride(grid.sites))
    rows[key_of(grid, grid.shape, site_of(grid, coords, row))] = static_cast<std::int32_t>(row);
}

/// features [sites][C], rows [batch][cells], x [batch][C][cells].
/// Block (kTile, kHeight); any grid (tiles of cells, tiles of a sample's channels).
__global__ void sparse_to_dense_transposed_tiles_transpose_tiles(SparseToDenseProblem problem,
                                                                 const float* features,
                                                                 const std::int32_t* rows,
                                                                 float* x) {
  __shared__ float tile[kTile][kTile + 1];
  const std::int64_t C = problem.C, cells = cells_of(problem);
  const std::int64_t cell_tiles = ceil_div<std::int64_t>(cells, kTile);
  const std::int64_t channel_tiles = ceil_div<std::int64_t>(C, kTile);
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);

  for (std::int64_t part = blockIdx.y; part < problem.grid.batch * channel_tiles;
       part += gridDim.y) {
    const std::int64_t n = part / channel_tiles, c0 = (part - n * channel_tiles) * kTile;
    for (std::int64_t i = blockIdx.x; i < cell_tiles; i += gridDim.x) {
      const std::int64_t cell0 = i * kTile;
      for (int cell = warp; cell < kTile && cell0 + cell < cells; cell += kHeight) {
        const std::int64_t row = rows[n * cells + cell0 + cell];
        const bool there = row >= 0 && c0 + lane < C;
        tile[cell][lane] = there ? features[row * C + c0 + lane] : 0.0f;
      }
      __syncthreads();  // the tile is complete before its columns are read
      for (int c = warp; c < kTile && c0 + c < C; c += kHeight) {
        if (cell0 + lane < cells) x[((n * C) + c0 + c) * cells + cell0 + lane] = tile[lane][c];
      }
      __syncthreads();  // the tile is read before the next one overwrites it
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
  launch(sparse_to_dense_transposed_tiles_number_cells,
         {blocks_for(problem.grid.sites, kThreads, kMaxBlocks), kThreads}, problem.grid,
         arrays.coords, rows);
  const std::int64_t parts = std::int64_t{problem.grid.batch} * ceil_div(problem.C, kTile);
  const dim3 grid(blocks_for(ceil_div<std::int64_t>(cells_of(problem), kTile), 1, kMaxBlocks),
                  blocks_for(parts, 1, kMaxGridYZ));
  launch(sparse_to_dense_transposed_tiles_transpose_tiles, {grid, dim3(kTile, kHeight)}, problem,
         arrays.features, rows, arrays.x);
}

}  // namespace

extern const Implementation<SparseToDenseArrays> transposed_tiles = {
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_to_dense
