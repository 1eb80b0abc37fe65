/// @file reduce_mma_parts.cuh
/// @brief The second kernel of the weight gradient on tensor cores: adds the parts of each tile, in
/// one order.
#pragma once

#include "core/cuda/launch.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kAddThreads = 256;  ///< Of a block that adds parts.
inline constexpr std::int64_t kMaxAddBlocks = 1
                                              << 20;  ///< Where there are more tiles, blocks go on.
inline constexpr int kManyParts = 16;  ///< From so many on, threads share the parts of a weight.

/// Adds the parts of each tile, always in the same order. kAddThreads / kShares neighbouring
/// threads take four weights each, or four filters' sums for db; thread (i, y) takes the tile's
/// parts y, y + kShares ... of them. Grid <= kMaxAddBlocks, block (kAddThreads / kShares, kShares).
template <class Shape, int kShares>
static __global__ void __launch_bounds__(kAddThreads)
    conv2d_wgrad_add_mma_parts(MmaProduct product, const float* parts, float* dw, float* db) {
  constexpr MmaShape S = Shape::kShape;
  constexpr int kFours = kAddThreads / kShares;            // of a block
  constexpr int kChunks = ceil_div(S.part() / 4, kFours);  // blocks of a tile
  __shared__ float4 of_share[kShares][kFours];
  const int thread = static_cast<int>(threadIdx.x), share = static_cast<int>(threadIdx.y);
  for (std::int64_t work = blockIdx.x; work < std::int64_t{product.tiles} * kChunks;
       work += gridDim.x) {
    const int tile_number = static_cast<int>(work / kChunks);
    const DwTile tile = tile_at<S>(product, tile_number);
    const int four = static_cast<int>(work % kChunks) * kFours + thread;
    const bool exists = four < (tile.n == 0 ? S.part() : S.M * S.N) / 4;
    float4 sum{};
    if (exists && product.steps > 0) {
      const int first_step = tile_number * product.steps;
      const int begin = product.block_with(first_step) + tile_number;
      const int end = product.block_with(first_step + product.steps - 1) + tile_number + 1;
      for (int part = begin + share; part < end; part += 4 * kShares) {
        float4 more[4];  // loaded before the first is added, also where there are fewer
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int other = part + j * kShares;
          const float* const from = parts + std::int64_t{other} * S.part() + four * 4;
          more[j] = other < end ? *reinterpret_cast<const float4*>(from) : float4{};
        }
        for (const float4& value : more) {
          sum = {sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w};
        }
      }
    }
    if constexpr (kShares > 1) {
      of_share[share][thread] = sum;
      __syncthreads();  // separates these stores from the loads below
      if (share == 0) {
        for (int other = 1; other < kShares; ++other) {
          const float4 more = of_share[other][thread];
          sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
        }
      }
      __syncthreads();  // separates these loads from the next weights' stores
    }
    if (share != 0 || !exists) continue;
    const bool is_weight = four < S.M * S.N / 4;
    const int m = is_weight ? four / (S.N / 4) : (four - S.M * S.N / 4) * 4;
    const int n = four % (S.N / 4) * 4;
    // A weight's neighbours are columns, a bias' neighbours are filters.
    const int left = is_weight ? product.columns - tile.n - n : product.filters - tile.m - m;
    if (tile.m + m >= product.filters) continue;
    const std::int64_t filter = std::int64_t{tile.group} * product.filters + tile.m + m;
    float* const to = is_weight ? dw + filter * product.columns + tile.n + n : db + filter;
    if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      *reinterpret_cast<float4*>(to) = sum;
    } else {
      const float values[] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < left) to[i] = values[i];
      }
    }
  }
}

/// Whether there are so many parts that threads share them.
inline bool has_many_parts(const MmaProduct& product) {
  return product.blocks / kManyParts >= product.tiles;
}

/// Adds up the parts, [blocks + tiles - 1][S.part()].
template <class Shape>
void launch_add_mma_parts(const MmaProduct& product, const float* parts, float* dw, float* db) {
  constexpr MmaShape S = Shape::kShape;
  const bool many = has_many_parts(product);
  const int shares = many ? 8 : 1;
  launch(many ? conv2d_wgrad_add_mma_parts<Shape, 8> : conv2d_wgrad_add_mma_parts<Shape, 1>,
         {blocks_for(std::int64_t{product.tiles} * ceil_div(S.part() / 4, kAddThreads / shares), 1,
                     kMaxAddBlocks),
          dim3(static_cast<unsigned>(kAddThreads / shares), static_cast<unsigned>(shares))},
         product, parts, dw, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
