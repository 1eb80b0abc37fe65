/// @file pack_weights.cuh
/// @brief The weights of a gathered product as rows along its channels, padded to whole tiles;
/// cuda_optimized/conv2d/implicit_gemm/packed_weights.cu explains why.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPackTile = 32;  ///< Rows and columns that a block packs at once.
inline constexpr int kPackRows = 8;   ///< Rows of threads of such a block.

/// The row of k where weight (c, tap) lies.
__device__ inline std::int64_t packed_row(const GatheredProduct& product, int c, int tap) {
  return product.table ? std::int64_t{c} * (product.R * product.S) + tap
                       : std::int64_t{tap} * product.padded_c + c;
}

/// weights [groups * filters][channels * taps] to packed [groups][k_rows][padded_m], with zeros
/// where there is no weight. Both are read and written along memory: the tile turns in shared
/// memory. Grid <= groups * ceil(c_rows * taps / 32) * padded_m / 32, block (32, 8).
/// @param c_rows channels, with so many behind the last one that all rows are written
static __global__ void conv2d_pack_weights(GatheredProduct product, int c_rows,
                                           const float* weights, float* packed) {
  __shared__ float tile[kPackTile][kPackTile + 1];  // [m][k]: columns in 32 banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int taps = product.R * product.S;
  const std::int64_t filter = std::int64_t{product.channels} * taps;
  const int tiles_m = ceil_div(product.padded_m, kPackTile);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(std::int64_t{c_rows} * taps, kPackTile);
  for (std::int64_t i = blockIdx.x; i < product.groups * tiles_k * tiles_m; i += gridDim.x) {
    const int m0 = static_cast<int>(i / tiles_k % tiles_m) * kPackTile;
    const std::int64_t group = i / tiles_k / tiles_m, k0 = i % tiles_k * kPackTile;
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const bool exists = m0 + row < product.filters && k0 + tx < filter;
      tile[row][tx] =
          exists ? weights[(group * product.filters + m0 + row) * filter + k0 + tx] : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const auto c = static_cast<int>((k0 + row) / taps), tap = static_cast<int>((k0 + row) % taps);
      const std::int64_t to = packed_row(product, c, tap);
      if (c < c_rows && to < product.k_rows && m0 + tx < product.padded_m) {
        packed[(group * product.k_rows + to) * product.padded_m + m0 + tx] = tile[tx][row];
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Channels whose weights, or zeros, fill all rows of k.
inline int packed_channels(const GatheredProduct& product) {
  return product.table ? ceil_div(product.k_rows, product.R * product.S) : product.padded_c;
}

/// Packs the weights of the forward pass for a planned product.
inline void launch_pack(const GatheredProduct& product, const float* weights, float* packed) {
  const int c_rows = packed_channels(product);
  const std::int64_t tiles_k =
      ceil_div<std::int64_t>(std::int64_t{c_rows} * product.R * product.S, kPackTile);
  const std::int64_t tiles = tiles_k * ceil_div(product.padded_m, kPackTile) * product.groups;
  launch(conv2d_pack_weights,
         {dim3(blocks_for(tiles, 1, kMaxGridX - 1)), dim3(kPackTile, kPackRows)}, product, c_rows,
         weights, packed);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
