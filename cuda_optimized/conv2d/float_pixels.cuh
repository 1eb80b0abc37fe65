/// @file float_pixels.cuh
/// @brief Where implicit_gemm_wgmma_patches_tf32.cu stores its sums: from registers, without a
/// draft.
#pragma once

#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/pixel_patch.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The output [N][P][Q][K], where the sums go.
struct FloatPixels {
  float* out;             ///< the output
  const float* bias;      ///< [K], or null
  Activation activation;  ///< of the sums with their bias
  int P, Q, K;            ///< of the output

  /// Stores a warpgroup's sums [filter][column]. Eight lanes of a warp have eight filters of a
  /// pixel.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        const float (&sums)[kColumns / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 16 + lane / 4;  // and the one 8 below
    const int row_columns = tiles.row_columns();
    float added[2];
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = filter + 8 * below;
      added[below] = bias != nullptr && row < filters.count ? bias[filters.first + row] : 0.0f;
    }
    const int columns = min(tiles.width, Q - tile.q), rows = min(tiles.rows, P - tile.p);
    const bool has[2] = {filter < filters.count, filter + 8 < filters.count};
    // Of a lane's two columns of every eight: where it is in the tile, and where in the output.
    int column[2] = {lane % 4 * 2, lane % 4 * 2 + 1}, row[2] = {};
    std::int64_t at[2];
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      at[odd] = Index4{P, Q, K}(tile.n, tile.p, tile.q + column[odd], filters.first + filter);
    const std::int64_t next_eight = std::int64_t{8} * K;
    const std::int64_t next_row = std::int64_t{8 + Q - row_columns} * K;  // beyond a row's end
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const bool inside = column[odd] < columns && row[odd] < rows;
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          if (inside && has[below]) {
            out[at[odd] + 8 * below] =
                activated(activation, sums[4 * i + 2 * below + odd] + added[below]);
          }
        }
        column[odd] += 8;
        const bool wraps = column[odd] >= row_columns;
        column[odd] -= wraps ? row_columns : 0;
        row[odd] += wraps ? 1 : 0;
        at[odd] += wraps ? next_row : next_eight;
      }
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
