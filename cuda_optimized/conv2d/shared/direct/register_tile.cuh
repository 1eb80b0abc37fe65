/// @file register_tile.cuh
/// @brief Register tiles of the direct rungs: a thread's column of pixels for several filters, the
/// filters' weights in shared memory, and vector loads.
///
/// All threads of a warp multiply by the same weights at the same time: they load them from one
/// address (a broadcast), and four at once where the filters of a tap are adjacent.
///
///     weights [K][C][R][S]            in shared memory, 6 filters
///     filter 0: t0 t1 t2 ...          tap 0: f0 f1 f2 f3 | f4 f5 . .
///     filter 1: t0 t1 t2 ...    ->    tap 1: f0 f1 f2 f3 | f4 f5 . .
///     ...
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// kCount floats from `from` on, which is a multiple of 16 bytes if kCount is one of 4, and of 8 if
/// it is one of 2. Where a warp has one address, such as that of a tap's weights, it is a
/// broadcast.
template <int kCount>
__device__ void load_vectors(const float* from, float (&values)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 two = *reinterpret_cast<const float2*>(from + i);
      values[i] = two.x;
      values[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = from[i];
  }
}

/// Floats from one tap's weights to the next tap's: whole vectors of 16 bytes, or a single weight.
template <int kFilters>
inline constexpr int kTapPitch = kFilters == 1 ? 1 : (kFilters + 3) / 4 * 4;

/// Floats of shared memory for the weights of so many taps: a multiple of 4.
template <int kFilters>
HOST_DEVICE constexpr std::int64_t filter_tile_floats(std::int64_t taps) {
  return (taps * kTapPitch<kFilters> + 3) / 4 * 4;
}

/// The weights that a block needs of one channel, in global memory.
template <int kFilters>
struct FilterTile {
  const float* weights;      ///< Tap 0 of the first filter.
  std::int64_t filter_size;  ///< Floats from a filter to the next one.
  int filters;               ///< Filters that exist: the last tile of a group may have fewer.
  int taps;                  ///< Of a filter and channel.

  /// Whether element i of [taps][kFilters] exists.
  __device__ bool has(int i) const { return i < taps * kFilters && i % kFilters < filters; }
  /// The address of element i.
  __device__ const float* at(int i) const {
    return weights + (i % kFilters * filter_size + i / kFilters);
  }
  /// Element i: the weight of tap i / kFilters and filter i % kFilters.
  __device__ float value(int i) const { return *at(i); }
  /// The index of element i in shared memory.
  __device__ static int place(int i) { return i / kFilters * kTapPitch<kFilters> + i % kFilters; }
};

/// The block copies the elements first, first + 1 ... to shared memory, one per thread. For a
/// filter that does not exist nothing is written, and the accumulators of its products are not
/// stored.
template <int kFilters>
__device__ void load_filters(const FilterTile<kFilters>& tile, int first, int thread, int threads,
                             float* to) {
  for (int i = first + thread; i < tile.taps * kFilters; i += threads) {
    if (tile.has(i)) to[FilterTile<kFilters>::place(i)] = tile.value(i);
  }
}

inline constexpr int kPixels = 8;  ///< Output pixels of a thread, one below the other.

/// Adds one channel's products to the register tile. `window` is the first pixel's window in the
/// input tile; `weights` are [r][s][kTapPitch]. Stands for
///
///     for r, s, f, i:  sums[f][i] += window[(i * stride + r * dilation) * pitch + s] *
///     weights[r][s][f]
///
/// A column of the window is loaded into registers once per s. With vertical stride and dilation 1
/// (kR > 0), its kPixels + kR - 1 values serve all r and all pixels.
template <int kR, int kS, int kFilters>
__device__ void multiply(const Conv2dProblem& conv, const float* window, int pitch,
                         const float* weights, float (&sums)[kFilters][kPixels]) {
  if constexpr (kR > 0) {  // vertical stride and dilation are 1
#pragma unroll 1
    for (int s = 0; s < kS; ++s) {
      float values[kPixels + kR - 1];
#pragma unroll
      for (int i = 0; i < kPixels + kR - 1; ++i) {
        values[i] = window[i * pitch + s * conv.dilation.w];
      }
#pragma unroll
      for (int r = 0; r < kR; ++r) {
        float weight[kTapPitch<kFilters>];
        load_vectors(weights + (r * kS + s) * kTapPitch<kFilters>, weight);
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i + r] * weight[f];
        }
      }
    }
  } else {
    for (int r = 0; r < conv.R; ++r) {
      for (int s = 0; s < conv.S; ++s) {
        const float* column = window + r * conv.dilation.h * pitch + s * conv.dilation.w;
        float values[kPixels];
#pragma unroll
        for (int i = 0; i < kPixels; ++i) values[i] = column[i * conv.stride.h * pitch];
        float weight[kTapPitch<kFilters>];
        load_vectors(weights + (r * conv.S + s) * kTapPitch<kFilters>, weight);
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i] * weight[f];
        }
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
