/// @file accumulators.cuh
/// @brief A warp's accumulators of direct/mma_tf32.cu, and their stores to y.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/tiling.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A warp's accumulators: filters in 16s, pixels in groups of two fragments, as mma's d.
template <class S>
using Sums = float[S::kFilterTiles][S::kGroups][2][4];

/// Stores a warp's accumulators: four floats at a time, or by way of the warp's draft, 32
/// neighbours at a time.
/// @param y the first filter's plane of the tile's image
template <class S>
__device__ void store(const Conv2dProblem& conv, const Tiling& tiling, OutputPixel at, int first,
                      int filters, const Sums<S>& sums, float* draft, float* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, place = lane % 4;
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  // Pixel `i` of the warp's, as an offset in a plane of y; -1: there is none.
  const auto pixel_at = [&](int i) -> std::int64_t {
    const int g = first + i / 16;
    const int row = tiling.by_across.quotient(g);
    const int p = at.p + row;
    const int q = at.q + tiling.by_across.remainder(g, row) * 16 + i % 16;
    const bool inside = g < tiling.rows * tiling.across && p < conv.P && q < conv.Q;
    return inside ? std::int64_t{p} * conv.Q + q : -1;
  };
  const auto four_of = [&](int m, int j, int half) {  // of filter 16 m + 8 half + group
    const auto value = [&](int h, int e) {
      return activated(conv.activation, sums[m][j][h][2 * half + e]);
    };
    return float4{value(0, 0), value(0, 1), value(1, 0), value(1, 1)};
  };
  if (tiling.draft_floats == 0) {
#pragma unroll
    for (int j = 0; j < S::kGroups; ++j) {
      std::int64_t to = pixel_at(16 * j + 4 * place);
      if (to < 0) continue;
      to += group * plane;
#pragma unroll
      for (int m = 0; m < S::kFilterTiles; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (16 * m + 8 * half + group < filters) {
            *reinterpret_cast<float4*>(y + to) = four_of(m, j, half);
          }
          to += 8 * plane;
        }
      }
    }
    return;
  }
  constexpr int kStores = (16 * S::kGroups + 31) / 32;
  std::int64_t pixels[kStores], filter_at = 0;
#pragma unroll
  for (int i = 0; i < kStores; ++i) {
    pixels[i] = lane + 32 * i < 16 * S::kGroups ? pixel_at(lane + 32 * i) : -1;
  }
#pragma unroll
  for (int m = 0; m < S::kFilterTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      __syncwarp();  // separates the loads of the filters before from these stores
#pragma unroll
      for (int j = 0; j < S::kGroups; ++j) {
        *reinterpret_cast<float4*>(draft + group * S::kDraftPitch + 16 * j + 4 * place) =
            four_of(m, j, half);
      }
      __syncwarp();  // separates these stores from the loads below
      const int rows = min(filters - 16 * m - 8 * half, 8);
#pragma unroll 1  // else the compiler keeps the offsets of all filters in registers
      for (int f = 0; f < rows; ++f) {
#pragma unroll
        for (int i = 0; i < kStores; ++i) {
          if (pixels[i] >= 0) {
            y[filter_at + pixels[i]] = draft[f * S::kDraftPitch + lane + 32 * i];
          }
        }
        filter_at += plane;
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
