/// @file fused_epilogue.cuh
/// @brief Bias and ReLU while sums are in registers, if they are asked for; fused_epilogue.cu
/// explains them.
#pragma once

#include "core/activation.hpp"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// What becomes of sums before they are rounded and stored.
template <class Shape>
struct Epilogue {
  const float* bias;      ///< [N], or null
  std::int64_t N;         ///< columns of c
  Activation activation;  ///< of sums with their bias

  /// Whether sums are not what is stored.
  __device__ bool asked() const { return bias != nullptr || activation != Activation::none; }
  /// Brings the bias of a tile's columns: lane l of each warp has those of columns 32 i + l.
  __device__ void load(const WgmmaItem& item, float (&of_lane)[Shape::N / 32]) const {
#pragma unroll
    for (int i = 0; i < Shape::N / 32; ++i) {
      const std::int64_t n =
          std::int64_t{item.n} * Shape::N + 32 * i + static_cast<int>(threadIdx.x) % 32;
      of_lane[i] = bias != nullptr && n < N ? bias[n] : 0.0f;
    }
  }
  /// Finishes a consumer's sums of a tile. Whole warps call it.
  __device__ void finish(const float (&of_lane)[Shape::N / 32],
                         float (&sums)[Shape::kRowTiles][Shape::N / 2]) const {
    const int pair = static_cast<int>(threadIdx.x) % 4 * 2;  // of 8 columns, a lane's own two
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float bias_n = __shfl_sync(~0u, of_lane[j / 4], j % 4 * 8 + pair + e);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          float& above = sums[i][4 * j + e];
          float& below = sums[i][4 * j + 2 + e];  // 8 rows further down
          above = activated(activation, above + bias_n);
          below = activated(activation, below + bias_n);
        }
      }
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
