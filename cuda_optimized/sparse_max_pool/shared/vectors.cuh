/// @file vectors.cuh
/// @brief Neighbouring channels of a row as one load or store of up to 16 bytes.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool {

/// kWidth neighbours of 4 bytes each, aligned so that they are one access to memory.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T at[kWidth];  ///< In the order of the channels.

  /// The neighbours that begin at `from`, a multiple of their size.
  __device__ static Vector load(const T* from) { return *reinterpret_cast<const Vector*>(from); }
  /// Stores them from `to` on, a multiple of their size.
  __device__ void store(T* to) const { *reinterpret_cast<Vector*>(to) = *this; }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
