/// @file repack.cuh
/// @brief Copies matrices into the workspace so that the copy engine can read them: transposed, or
/// with longer rows.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// A batch of row-major matrices, and where their copies go.
struct Repack {
  std::int64_t batch;
  int rows, columns;            ///< Of the source.
  std::int64_t source_batch;    ///< Floats from one source matrix to the next.
  std::int64_t target_row;      ///< Floats from one row of the copy to the next.
  std::int64_t target_batch;    ///< Floats from one copy to the next; a copy's batch index splits
  std::int64_t target_inner;    ///< into (outer, inner) by `inner`: inner ones lie target_inner
  int inner = 1;                ///< apart.
  int padded;                   ///< Columns of the copy: zeros follow the source's.

  HOST_DEVICE std::int64_t target(std::int64_t index) const {
    return index / inner * target_batch + index % inner * target_inner;
  }
};

inline constexpr int kRepackTile = 32, kRepackRows = 8;
inline constexpr std::int64_t kMaxRepackBlocks = 132 * 16;  ///< Enough to fill any GPU.

/// target[b][j][i] = source[b][i][j]. Block (kRepackTile, kRepackRows), grid <= kMaxRepackBlocks:
/// a tile goes through shared memory, so that both sides are read and written along memory.
static __global__ void transpose(Repack repack, const float* source, float* target) {
  __shared__ float tile[kRepackTile][kRepackTile + 1];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t tiles_i = ceil_div(repack.padded, kRepackTile);
  const std::int64_t tiles_j = ceil_div(repack.columns, kRepackTile);
  const std::int64_t tiles = repack.batch * tiles_i * tiles_j;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t b = index / (tiles_i * tiles_j), place = index % (tiles_i * tiles_j);
    const int i0 = static_cast<int>(place % tiles_i) * kRepackTile;
    const int j0 = static_cast<int>(place / tiles_i) * kRepackTile;
    const float* from = source + b * repack.source_batch;
    float* to = target + repack.target(b);
    for (int i = ty; i < kRepackTile; i += kRepackRows) {
      tile[i][tx] = i0 + i < repack.rows && j0 + tx < repack.columns
                        ? from[std::int64_t{i0 + i} * repack.columns + j0 + tx]
                        : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
    for (int j = ty; j < kRepackTile; j += kRepackRows) {
      if (i0 + tx < repack.padded && j0 + j < repack.columns) {
        to[(j0 + j) * repack.target_row + i0 + tx] = tile[tx][j];
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

inline void launch_transpose(const Repack& repack, const float* source, float* target) {
  const std::int64_t tiles = repack.batch * ceil_div(repack.padded, kRepackTile) *
                             ceil_div(repack.columns, kRepackTile);
  launch(transpose, {dim3(blocks_for(tiles, 1, kMaxRepackBlocks)), dim3(kRepackTile, kRepackRows)},
         repack, source, target);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
