/// @file vectors.cuh
/// @brief Neighbouring channels of a row as one load or store of up to 16 bytes.
#pragma once

#include <cstdint>
#include <initializer_list>

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

/// How many channels fit into an access: 4, 2 or 1, so that rows of C channels in all of the arrays
/// begin at a multiple of its size.
inline int vector_width(int C, std::initializer_list<const void*> arrays) {
  for (const int width : {4, 2}) {
    bool fits = C % width == 0;
    for (const void* array : arrays)
      fits =
          fits && reinterpret_cast<std::uintptr_t>(array) % (4 * static_cast<unsigned>(width)) == 0;
    if (fits) return width;
  }
  return 1;
}

/// How many threads of a block stand along a row of so many vectors: a power of two, at most
/// `most`.
inline int threads_along(int vectors, int most) {
  int width = 1;
  while (width < vectors && width < most) width *= 2;
  return width;
}

/// For a rung's choice: what holds if arrays begin at multiples of 16 bytes.
inline std::string vectors_in_words(int C, int most) {
  const int vector = vector_width(C, {}), width = threads_along(C / vector, most);
  return text("vectors of ", vector, ", ", width, width == 1 ? " thread a row" : " threads a row",
              C / vector > width ? ", more vectors than threads" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
