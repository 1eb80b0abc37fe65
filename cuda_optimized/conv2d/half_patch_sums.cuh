/// @file half_patch_sums.cuh
/// @brief A warp's sums of direct_mma_16bit.cu, and their way to y.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/half_patch.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A warp's sums as mma's d: filters in eights, pixels in fragments of 16.
template <class S>
using HalfPatchSums = float[S::kTiles][S::kFragments][4];

/// Two sums as a word of y.
template <class T>
__device__ std::uint32_t rounded_pair(Activation activation, float first, float second) {
  return rounded_to<T>(activated(activation, first)).bits |
         std::uint32_t{rounded_to<T>(activated(activation, second)).bits} << 16;
}

/// Stores a warp's sums of the fragments from `first` on: a word, or two side by side, at a time, or
/// by way of the warp's draft, 32 neighbours at a time.
/// @param y the first filter's plane of the tile's image
template <class S, class T>
__device__ void store(const Conv2dProblem& conv, const HalfPatchTiling& tiling, HalfPatchPlace at,
                      int first, int filters, const HalfPatchSums<S>& sums, std::uint32_t* draft,
                      T* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, place = lane % 4;  // of the fragments, as in mma_m16n8k16_f16()
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  // Column i of the piece of fragment f, as an offset in a plane of y; -1: there is none.
  const auto pixel_at = [&](int f, int i) -> std::int64_t {
    const int piece = f >> tiling.odd, row = tiling.by_across.quotient(piece);
    const int p = at.p + row;
    const int q = at.q + tiling.by_across.remainder(piece, row) * tiling.piece() + i;
    const bool inside = f < tiling.fragments() && p < conv.P && q < conv.Q;
    return inside ? std::int64_t{p} * conv.Q + q : -1;
  };
#pragma unroll
  for (int f = 0; f < S::kFragments; f += 2) {
    // Two words of filter 8 m + 2 place + e. Even strides: pixels 2 group and the next one, of
    // either fragment's piece. Odd ones: pixels 4 group to 4 group + 3 of the piece of both.
    const auto words_of = [&](int m, int e) -> uint2 {
      const float s = sums[m][f][2 + e], t = sums[m][f + 1][e];
      return {rounded_pair<T>(conv.activation, sums[m][f][e], tiling.odd ? t : s),
              rounded_pair<T>(conv.activation, tiling.odd ? s : t, sums[m][f + 1][2 + e])};
    };
    if (tiling.draft_words == 0) {
      const std::int64_t pixel0 = pixel_at(first + f, 2 * group << tiling.odd);
      const std::int64_t pixel1 = tiling.odd ? -1 : pixel_at(first + f + 1, 2 * group);
      std::int64_t to = 2 * place * plane;
#pragma unroll
      for (int m = 0; m < S::kTiles; ++m) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const uint2 words = words_of(m, e);
          const bool inside = 8 * m + 2 * place + e < filters;
          if (tiling.odd) {
            if (inside && pixel0 >= 0) reinterpret_cast<uint2*>(y)[(to + pixel0) / 4] = words;
          } else {
            auto* const pairs = reinterpret_cast<std::uint32_t*>(y);
            if (inside && pixel0 >= 0) pairs[(to + pixel0) / 2] = words.x;
            if (inside && pixel1 >= 0) pairs[(to + pixel1) / 2] = words.y;
          }
          to += e == 0 ? plane : 7 * plane;
        }
      }
      continue;
    }
    // The draft [8 filters][32 pixels]: of one piece, or of two, one after the other.
    const std::int64_t pixel =
        tiling.odd ? pixel_at(first + f, lane) : pixel_at(first + f + lane / 16, lane % 16);
    std::int64_t filter_at = 0;
#pragma unroll
    for (int m = 0; m < S::kTiles; ++m) {
      __syncwarp();  // separates the loads of the filters before from these stores
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        std::uint32_t* const row = draft + (2 * place + e) * kHalfDraftPitch;
        const uint2 words = words_of(m, e);
        if (tiling.odd) {
          reinterpret_cast<uint2*>(row)[group] = words;
        } else {
          row[group] = words.x;
          row[8 + group] = words.y;
        }
      }
      __syncwarp();  // separates these stores from the loads below
      const int rows = min(filters - 8 * m, 8);
#pragma unroll 1  // else the compiler keeps the offsets of all filters in registers
      for (int i = 0; i < rows; ++i) {
        if (pixel >= 0) {
          y[filter_at + pixel] = reinterpret_cast<const T*>(draft + i * kHalfDraftPitch)[lane];
        }
        filter_at += plane;
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
