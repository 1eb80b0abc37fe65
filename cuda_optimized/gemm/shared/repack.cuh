/// @file repack.cuh
/// @brief Copies matrices into the workspace as TMA can read them: transposed.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Source matrices [rows][columns], and where their transposed copies go; strides are in floats.
struct Repack {
  /// One of the axes along which there are several matrices.
  struct Axis {
    int count = 1;                  ///< matrices along it
    std::int64_t from = 0, to = 0;  ///< from a matrix to the next, and from a copy to the next
  };
  Axis axes[3];                        ///< the last one fastest
  int rows, columns;                   ///< of a source matrix
  std::int64_t from_row, from_column;  ///< from a row, or column, of the source to the next
  std::int64_t to_row;  ///< from a row of the copy, a column of the source, to the next
  int padded;           ///< a copy's row is so long: zeros follow the source's

  /// How many there are: the product of the counts.
  HOST_DEVICE std::int64_t matrices() const {
    return std::int64_t{axes[0].count} * axes[1].count * axes[2].count;
  }
};

/// What becomes of the values on the way.
enum class Rounding { none, to_tf32 };

inline constexpr int kRepackTile = 32, kRepackRows = 8;     ///< a tile's side; its rows at a time
inline constexpr std::int64_t kMaxRepackBlocks = 132 * 16;  ///< enough to fill any GPU

/// target[j][i] = source[i][j]. Block (kRepackTile, kRepackRows), grid <= kMaxRepackBlocks. A tile
/// goes through shared memory, so that both sides are read and written along memory.
template <Rounding kRounding>
__global__ void gemm_transpose(Repack repack, const float* source, float* target) {
  __shared__ float tile[kRepackTile][kRepackTile + 1];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int tiles_i = ceil_div(repack.padded, kRepackTile);
  const int tiles_j = ceil_div(repack.columns, kRepackTile);
  const std::int64_t tiles = repack.matrices() * tiles_i * tiles_j;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    std::int64_t matrix = index / tiles_i / tiles_j;
    const float* from = source;
    float* to = target;
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
      const std::int64_t at = matrix % repack.axes[axis].count;
      matrix /= repack.axes[axis].count;
      from += at * repack.axes[axis].from;
      to += at * repack.axes[axis].to;
    }
    const int i0 = static_cast<int>(index % tiles_i) * kRepackTile;
    const int j0 = static_cast<int>(index / tiles_i % tiles_j) * kRepackTile;
    for (int i = ty; i < kRepackTile; i += kRepackRows) {
      tile[i][tx] = i0 + i < repack.rows && j0 + tx < repack.columns
                        ? from[(i0 + i) * repack.from_row + (j0 + tx) * repack.from_column]
                        : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
    for (int j = ty; j < kRepackTile; j += kRepackRows) {
      if (i0 + tx < repack.padded && j0 + j < repack.columns) {
        const float value = tile[tx][j];
        to[(j0 + j) * repack.to_row + i0 + tx] =
            kRounding == Rounding::to_tf32 ? __uint_as_float(ptx::to_tf32(value)) : value;
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Copies all matrices of `repack`, by transpose().
template <Rounding kRounding = Rounding::none>
void launch_transpose(const Repack& repack, const float* source, float* target) {
  const std::int64_t tiles = repack.matrices() * ceil_div(repack.padded, kRepackTile) *
                             ceil_div(repack.columns, kRepackTile);
  launch(gemm_transpose<kRounding>,
         {dim3(blocks_for(tiles, 1, kMaxRepackBlocks)), dim3(kRepackTile, kRepackRows)}, repack,
         source, target);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
