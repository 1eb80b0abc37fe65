/// @file winograd_weights.cuh
/// @brief The transform of weights for the products of F(4 x 4, 3 x 3).
#pragma once

#include "core/cuda/grid_stride.hpp"
#include "cuda_optimized/conv2d/shared/winograd/winograd_transforms.cuh"
#include "cuda_optimized/conv2d/winograd/4x4.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kWeightThreads = 128;  ///< Of a block: as many adjacent elements of U.

/// weights in that order, u [frequency][group][k][m], or [frequency][group][m][k].
/// Grid of any size, along x for the innermost axis, along y for the other one.
/// @tparam kRows whether U's rows run along the channels k
template <bool kRows>
__global__ void __launch_bounds__(kWeightThreads)
    conv2d_winograd_4x4_weights(int group_k, int group_c, WinogradProduct product,
                                const float* weights, WeightsOrder order, float* u) {
  const bool turned = order == WeightsOrder::turned;
  const std::int64_t groups = product.products / kFrequencies4x4;
  const std::int64_t columns = kRows ? product.k : product.m, rows = kRows ? product.m : product.k;
  const std::int64_t column = thread_of_grid<kWeightThreads>();
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < groups * rows; row += gridDim.y) {
    const std::int64_t group = row / rows;
    const std::int64_t m = kRows ? row % rows : column, k = kRows ? column : row % rows;
    float g[9] = {};
    if (m < group_k && k < group_c) {
      const float* from = weights + 9 * (turned ? (group * group_c + k) * group_k + m
                                                : (group * group_k + m) * group_c + k);
#pragma unroll
      for (int i = 0; i < 9; ++i) g[i] = from[turned ? 8 - i : i];
    }
    float* to = u + row * columns + column;
    transform_filter<Winograd4>(
        g, [&](int f, float number) { to[f * groups * rows * columns] = number; });
  }
}

/// Launches it. @param group_k filters of a group @param group_c its channels
template <bool kRows>
void launch_winograd_weights(int group_k, int group_c, const WinogradProduct& product,
                             const float* weights, WeightsOrder order, float* u) {
  const std::int64_t groups = product.products / kFrequencies4x4;
  const dim3 grid(blocks_for(kRows ? product.k : product.m, kWeightThreads),
                  blocks_for(groups * (kRows ? product.m : product.k), 1, kMaxGridYZ));
  launch(conv2d_winograd_4x4_weights<kRows>, {grid, kWeightThreads}, group_k, group_c, product,
         weights, order, u);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
