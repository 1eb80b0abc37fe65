/// @file filter_tile.cuh
/// @brief One channel's weights of a few filters in shared memory, filters innermost.
///
/// All threads of a warp multiply by the same weights at the same time: they load them from one
/// address, in one wavefront, and four at once where the filters of a tap lie side by side.
///
///     weights [K][C][R][S]            in shared memory, 6 filters
///     filter 0: t0 t1 t2 ...          tap 0: f0 f1 f2 f3 | f4 f5 . .
///     filter 1: t0 t1 t2 ...    ->    tap 1: f0 f1 f2 f3 | f4 f5 . .
///     ...
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Floats from a tap's weights to the next one's: whole vectors of 16 bytes, or a single weight.
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
  int filters;               ///< So many are there: the last tile of a group may have fewer.
  int taps;                  ///< Of a filter and channel.

  /// Whether there is an element i of [taps][kFilters].
  __device__ bool has(int i) const { return i < taps * kFilters && i % kFilters < filters; }
  /// Where it is, and its value.
  __device__ const float* at(int i) const {
    return weights + (i % kFilters * filter_size + i / kFilters);
  }
  /// The weight itself, of tap i / kFilters and filter i % kFilters.
  __device__ float value(int i) const { return *at(i); }
  /// Its place in shared memory.
  __device__ static int place(int i) { return i / kFilters * kTapPitch<kFilters> + i % kFilters; }
};

/// The block copies the elements first, first + 1 ... to shared memory, one a thread. Where there
/// is no filter, nothing is written, and a thread multiplies by whatever stands there.
template <int kFilters>
__device__ void load_filters(const FilterTile<kFilters>& tile, int first, int thread, int threads,
                             float* to) {
  for (int i = first + thread; i < tile.taps * kFilters; i += threads) {
    if (tile.has(i)) to[FilterTile<kFilters>::place(i)] = tile.value(i);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
