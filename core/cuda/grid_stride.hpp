/// @file grid_stride.hpp
/// @brief The grid-stride loop: a kernel whose grid may have fewer threads than work items.
///
///     for (const std::int64_t i : grid_stride(count)) ...
///
/// Neighbouring threads take neighbouring items in each iteration (M. Harris, "CUDA Pro Tip: Write
/// Flexible Kernels with Grid-Stride Loops", 2013).
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// This thread's index in a one-dimensional grid.
/// @tparam kThreads  threads per block, if known at compile time
template <unsigned kThreads = 0>
__device__ inline std::int64_t thread_of_grid() {
  if constexpr (kThreads > 0) return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

/// The number of threads in the grid.
template <unsigned kThreads = 0>
__device__ inline std::int64_t threads_of_grid() {
  if constexpr (kThreads > 0) return std::int64_t{gridDim.x} * kThreads;
  return std::int64_t{gridDim.x} * blockDim.x;
}

/// The items `first`, first + threads of the grid, ... below `count`.
template <unsigned kThreads>
struct GridStride {
  std::int64_t step, first, count;  ///< Threads of the grid, the current item, and the limit.

  /// The iterator for range-based loops.
  struct Iterator {
    std::int64_t number, step;  ///< The current item, and the distance to the next.
    /// The current item.
    __device__ std::int64_t operator*() const { return number; }
    /// Advances to the next item. If the block size is known, the distance takes one multiplication
    /// and no register.
    __device__ void operator++() { number += kThreads > 0 ? threads_of_grid<kThreads>() : step; }
    /// Whether there is a further item.
    __device__ bool operator!=(std::int64_t end) const { return number < end; }
  };
  /// The first item.
  __device__ Iterator begin() const { return {first, step}; }
  /// The limit.
  __device__ std::int64_t end() const { return count; }
};

/// The items of this thread of a one-dimensional grid among `count` items: its index, and every
/// item at a distance of the number of threads. Written out:
///
///     for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
///          i += std::int64_t{gridDim.x} * blockDim.x)
///
/// @tparam kThreads  threads per block, if known at compile time
template <unsigned kThreads = 0>
__device__ inline GridStride<kThreads> grid_stride(std::int64_t count) {
  return {threads_of_grid<kThreads>(), thread_of_grid<kThreads>(), count};
}

}  // namespace convladder::BACKEND
