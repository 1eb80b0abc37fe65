/// @file grid_stride.hpp
/// @brief The loop of a kernel whose grid may have fewer threads than there is work.
///
///     for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) ...
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
  return std::int64_t{blockIdx.x} * (kThreads > 0 ? kThreads : blockDim.x) + threadIdx.x;
}

/// How many threads there are in it.
template <unsigned kThreads = 0>
__device__ inline std::int64_t threads_of_grid() {
  return std::int64_t{gridDim.x} * (kThreads > 0 ? kThreads : blockDim.x);
}

}  // namespace convladder::BACKEND
