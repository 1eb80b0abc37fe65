/// @file threads_along.cuh
/// @brief The shape of a block along rows of channels, and the vector width of its threads.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_max_pool {

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

/// The number of threads of a block along a row of this many vectors: a power of two, at most
/// `most`.
inline int threads_along(int vectors, int most) {
  int width = 1;
  while (width < vectors && width < most) width *= 2;
  return width;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_max_pool
