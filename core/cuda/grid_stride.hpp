/// @file grid_stride.hpp
/// @brief The loop of a kernel whose grid may have fewer threads than there is work.
///
///     for (const std::int64_t i : grid_stride(count)) ...
///
/// Neighbouring threads take neighbouring items, in each round (M. Harris, "CUDA Pro Tip: Write
/// Flexible Kernels with Grid-Stride Loops", 2013).
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// This thread's number in a one-dimensional grid.
/// @tparam kThreads  threads of a block, where the kernel knows them
template <unsigned kThreads = 0>
__device__ inline std::int64_t thread_of_grid() {
  if constexpr (kThreads > 0) return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

/// How many threads there are in it.
template <unsigned kThreads = 0>
__device__ inline std::int64_t threads_of_grid() {
  if constexpr (kThreads > 0) return std::int64_t{gridDim.x} * kThreads;
  return std::int64_t{gridDim.x} * blockDim.x;
}

/// `first`, and every so many from there on as the grid has threads, as long as it is below
/// `count`.
template <unsigned kThreads>
struct GridStride {
  std::int64_t step, first, count;  ///< Threads of the grid, this one's number, and the limit.

  /// A number of them, as range-based loops ask for it.
  struct Iterator {
    std::int64_t number, step;  ///< This one, and how far the next is.
    /// This one.
    __device__ std::int64_t operator*() const { return number; }
    /// The next one. With a known block, one multiplication says how far it is, and holds no
    /// register.
    __device__ void operator++() { number += kThreads > 0 ? threads_of_grid<kThreads>() : step; }
    /// Whether there is one.
    __device__ bool operator!=(std::int64_t end) const { return number < end; }
  };
  /// The first.
  __device__ Iterator begin() const { return {first, step}; }
  /// What they are below.
  __device__ std::int64_t end() const { return count; }
};

/// Of `count` items, those of this thread of a one-dimensional grid: its number, and from there on
/// every one as far as there are threads. Written out:
///
///     for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
///          i += std::int64_t{gridDim.x} * blockDim.x)
///
/// @tparam kThreads  threads of a block, where the kernel knows them
template <unsigned kThreads = 0>
__device__ inline GridStride<kThreads> grid_stride(std::int64_t count) {
  return {threads_of_grid<kThreads>(), thread_of_grid<kThreads>(), count};
}

}  // namespace convladder::BACKEND
