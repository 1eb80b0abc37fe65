/// @file float_pixels.cuh
/// @brief Where hopper/halo_tile_tf32.cu stores its sums: from registers, without a
/// draft.
#pragma once

#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The output [N][P][Q][K], where the sums go.
struct FloatPixels {
  float* out;             ///< the output
  const float* bias;      ///< [K], or null
  Activation activation;  ///< of the sums with their bias
  int P, Q, K;            ///< of the output
  bool fours;             ///< four filters are stored at once, where a lane has neighbours

  /// Stores a warpgroup's sums [filter][column]. Eight lanes of a warp have eight filters of a
  /// pixel.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        const float (&sums)[1][kColumns / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 16 + lane / 4;  // and the one 8 below
    float added[2];
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = filter + 8 * below;
      added[below] = bias != nullptr && row < filters.count ? bias[filters.first + row] : 0.0f;
    }
    const bool has[2] = {filter < filters.count, filter + 8 < filters.count};
    for_each_pixel<kColumns>(tiles, tile, filters.first + filter, [&](int i, int odd, float* at) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        if (has[below])
          at[8 * below] = activated(activation, sums[0][4 * i + 2 * below + odd] + added[below]);
      }
    });
  }

  /// The same of two blocks, whose filters are in the order of filters_in_fours.cuh.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        const float (&sums)[2][kColumns / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 32 + lane / 4 * 4;  // and three more
    if (filter >= filters.count) return;                 // all four, or none
    float added[4];
#pragma unroll
    for (int f = 0; f < 4; ++f)
      added[f] = bias != nullptr ? bias[filters.first + filter + f] : 0.0f;
    for_each_pixel<kColumns>(tiles, tile, filters.first + filter, [&](int i, int odd, float* at) {
      float four[4];
#pragma unroll
      for (int f = 0; f < 4; ++f)
        four[f] = activated(activation, sums[f / 2][4 * i + f % 2 * 2 + odd] + added[f]);
      if (fours) {
        *reinterpret_cast<float4*>(at) = {four[0], four[1], four[2], four[3]};
      } else {
#pragma unroll
        for (int f = 0; f < 4; ++f) at[f] = four[f];
      }
    });
  }

 private:
  /// Calls store(i, odd, where) for those of a lane's pixels, two of each eight columns i, that
  /// are there. @param filter the lane's first one
  template <int kColumns, class Store>
  __device__ void for_each_pixel(const PatchTiles& tiles, const PatchTile& tile, int filter,
                                 const Store& store) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, row_columns = tiles.row_columns();
    const int columns = min(tiles.width, Q - tile.q), rows = min(tiles.rows, P - tile.p);
    // Of a lane's two columns of every eight: where it is in the tile, and where in the output.
    int column[2] = {lane % 4 * 2, lane % 4 * 2 + 1}, row[2] = {};
    std::int64_t at[2];
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      at[odd] = Index4{P, Q, K}(tile.n, tile.p, tile.q + column[odd], filter);
    const std::int64_t next_eight = std::int64_t{8} * K;
    const std::int64_t next_row = std::int64_t{8 + Q - row_columns} * K;  // beyond a row's end
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        if (column[odd] < columns && row[odd] < rows) store(i, odd, out + at[odd]);
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
