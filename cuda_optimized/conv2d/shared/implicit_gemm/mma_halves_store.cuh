/// @file mma_halves_store.cuh
/// @brief How the accumulators of mma.sync become the outputs of an NHWC convolution in half
/// precision, or parts that a second kernel adds.
#pragma once

#include <type_traits>

#include "core/cuda/grid_stride.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Stores four adjacent outputs, at once where `four`, else the first `count` of them one by one.
template <class T>
__device__ inline void store_four(T* to, float4 sums, int count, bool four) {
  if (!four) {
    if (count > 0) to[0] = rounded_to<T>(sums.x);
    if (count > 1) to[1] = rounded_to<T>(sums.y);
    if (count > 2) to[2] = rounded_to<T>(sums.z);
    if (count > 3) to[3] = rounded_to<T>(sums.w);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    *reinterpret_cast<float4*>(to) = sums;
  } else {
    *reinterpret_cast<uint2*>(to) = {gemm::two_rounded<T>(sums.x, sums.y),
                                     gemm::two_rounded<T>(sums.z, sums.w)};
  }
}

/// Writes the tile's sums, plus bias and activated, to the pixels' outputs. They pass through
/// shared memory, which nothing else uses any more, so that a warp stores whole sectors.
/// @param pixel_at row -> where the pixel's outputs begin
/// @param bias of all channels, or null
template <class S, class PixelAt, class T>
__device__ void store_sums(const GatheredGemm& product, const HalfBlock<S>& block,
                           const float (&sums)[S::WarpM / 16][S::WarpN / 8][4], float* staged,
                           const float* bias, const PixelAt& pixel_at, T* out) {
  const int lane = gemm::lane_of_warp(), thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // separates the last loads of fragments from these stores
#pragma unroll
  for (int i = 0; i < S::WarpM / 8; ++i) {
    float* const row = staged + (block.warp_m + 8 * i + lane / 4) * S::kPitch + block.warp_n;
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; ++j) {
      gemm::store_two(row + 8 * j + lane % 4 * 2, sums[i / 2][j][i % 2 * 2],
                      sums[i / 2][j][i % 2 * 2 + 1]);
    }
  }
  __syncthreads();  // separates the stores of all threads from these loads
  constexpr int kFours = S::N / 4;
  static_assert(S::kThreads % kFours == 0, "a thread stores the same filters of every row");
  const int n = thread % kFours * 4, count = product.filters - block.n0 - n;
  if (count <= 0) return;
  const int channel = block.group * product.filters + block.n0 + n;
  const bool four =
      product.filters % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % (4 * sizeof(T)) == 0;
  float added[4] = {};
  for (int e = 0; e < 4; ++e) {
    if (bias != nullptr && e < count) added[e] = bias[channel + e];
  }
#pragma unroll 4
  for (int row = thread / kFours; row < block.rows; row += S::kThreads / kFours) {
    float4 v = reinterpret_cast<const float4*>(staged + row * S::kPitch)[n / 4];
    v = {activated(product.activation, v.x + added[0]),
         activated(product.activation, v.y + added[1]),
         activated(product.activation, v.z + added[2]),
         activated(product.activation, v.w + added[3])};
    store_four(out + pixel_at(row) + channel, v, count, four);
  }
}

/// out [count] = bias [channels], or null, + the parts [splits][count] in their order, activated
/// and rounded; kWidth elements at a time. Grid <= kMaxFlatBlocks, block kFlatThreads.
template <class T, int kWidth>
__global__ void conv2d_sum_half_parts(const float* parts, int splits, std::int64_t count,
                                      const float* bias, int channels, Activation activation,
                                      T* out) {
  using Parts = std::conditional_t<kWidth == 4, float4, float>;
  using Outs = std::conditional_t<kWidth == 4, uint2, T>;
  for (const std::int64_t i : grid_stride<kFlatThreads>(count / kWidth)) {
    float sums[kWidth];
    for (int e = 0; e < kWidth; ++e)
      sums[e] = bias != nullptr ? bias[(i * kWidth + e) % channels] : 0.0f;
#pragma unroll 4
    for (int split = 0; split < splits; ++split) {
      const Parts part = reinterpret_cast<const Parts*>(parts + split * count)[i];
      if constexpr (kWidth == 4) {
        sums[0] += part.x, sums[1] += part.y, sums[2] += part.z, sums[3] += part.w;
      } else {
        sums[0] += part;
      }
    }
    for (float& sum : sums) sum = activated(activation, sum);
    if constexpr (kWidth == 4) {
      reinterpret_cast<Outs*>(out)[i] = {gemm::two_rounded<T>(sums[0], sums[1]),
                                         gemm::two_rounded<T>(sums[2], sums[3])};
    } else {
      out[i] = rounded_to<T>(sums[0]);
    }
  }
}

/// Launches it. @param bias [channels] or null
template <class T>
void launch_sum_half_parts(const float* parts, int splits, std::int64_t count, const float* bias,
                           int channels, Activation activation, T* out) {
  const bool fours = channels % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 8 == 0;
  launch(fours ? conv2d_sum_half_parts<T, 4> : conv2d_sum_half_parts<T, 1>,
         {blocks_for(fours ? count / 4 : count, kFlatThreads, kMaxFlatBlocks), kFlatThreads}, parts,
         splits, count, bias, channels, activation, out);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
