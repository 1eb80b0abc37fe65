/// @file half_accumulators.cuh
/// @brief A warp's accumulators of direct/mma.cu, and their stores to y.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/half_halo_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A warp's accumulators as mma's d: filters in eights, pixels in fragments of 16.
template <class S>
using HalfPatchSums = float[S::kTiles][S::kFragments][4];

/// Adds the biases, and does what else the sums need before they are rounded.
/// @param biases those of the block's filters, in shared memory
template <class S>
__device__ void complete(const Conv2dProblem& conv, const float* biases, HalfPatchSums<S>& sums) {
  if (!conv.bias && conv.activation == Activation::none) return;
  const auto* const pairs = reinterpret_cast<const float2*>(biases) + threadIdx.x % 4;
#pragma unroll
  for (int m = 0; m < S::kTiles; ++m) {
    const float2 bias = pairs[4 * m];
#pragma unroll
    for (int f = 0; f < S::kFragments; ++f) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[m][f][i] = activated(conv.activation, sums[m][f][i] + (i % 2 == 0 ? bias.x : bias.y));
      }
    }
  }
}

/// Two sums as a word.
template <class T>
__device__ std::uint32_t rounded_pair(float first, float second) {
  return rounded_to<T>(first).bits | std::uint32_t{rounded_to<T>(second).bits} << 16;
}

/// Stores a warp's accumulators of the tile's pixels from `first` on: four adjacent at a time; or
/// by way of the warp's draft [32 pixels][8 filters], where a lane has them of one pixel.
/// @param y the first filter's plane of the tile's image
template <class S, class T>
__device__ void store(const Conv2dProblem& conv, const HalfPatchTiling& tiling, HalfPatchPlace at,
                      int first, int filters, const HalfPatchSums<S>& sums, std::uint32_t* draft,
                      T* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, place = lane % 4;  // of the fragments, as in mma_m16n8k16_f16()
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  // The tile's pixel i, as an offset in a plane of y; -1: there is none.
  const auto offset_of = [&](int i) -> std::int64_t {
    const HalfPatchPixel pixel = pixel_at(tiling, i);
    const int p = at.p + pixel.row, q = at.q + pixel.column;
    const bool inside = i < tiling.pixels() && p < conv.P && q < conv.Q;
    return inside ? std::int64_t{p} * conv.Q + q : -1;
  };
#pragma unroll
  for (int f = 0; f < S::kFragments; f += 2) {
    // Pixels 4 group to 4 group + 3 of 32, filter 8 m + 2 place + e.
    const auto four_of = [&](int m, int e) -> uint2 {
      return {rounded_pair<T>(sums[m][f][e], sums[m][f + 1][e]),
              rounded_pair<T>(sums[m][f][2 + e], sums[m][f + 1][2 + e])};
    };
    if (tiling.draft_words == 0) {
      const std::int64_t offset = offset_of(first + 16 * f + 4 * group);
      if (offset < 0) continue;
      auto* const fours = reinterpret_cast<uint2*>(y);
      std::int64_t to = (2 * place * plane + offset) / 4;
#pragma unroll
      for (int m = 0; m < S::kTiles; ++m) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (8 * m + 2 * place + e < filters) fours[to] = four_of(m, e);
          to += e == 0 ? plane / 4 : 7 * (plane / 4);
        }
      }
      continue;
    }
    // Pixel 4 g + i of 32 is row 8 i + g of the draft: then neither the stores nor the loads have
    // lanes that access different words of a bank.
    const std::int64_t offset = offset_of(first + 16 * f + 4 * (lane % 8) + lane / 8);
    std::int64_t to = offset;
#pragma unroll
    for (int m = 0; m < S::kTiles; ++m) {
      __syncwarp();  // separates the loads of the filters before from these stores
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const two = &sums[m][f + i % 2][i / 2 * 2];
        draft[(8 * i + group) * 4 + place] = rounded_pair<T>(two[0], two[1]);
      }
      __syncwarp();  // separates these stores from the load below
      const uint4 eight = reinterpret_cast<const uint4*>(draft)[lane];
      const std::uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const auto bits = static_cast<std::uint16_t>(pairs[i / 2] >> i % 2 * 16);
        if (offset >= 0 && 8 * m + i < filters) y[to] = T{bits};
        to += plane;
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
