/// @file
/// @brief Static shared memory in a function that several .cu files include.
#pragma once

#include <cuda_runtime.h>

/// How many of `bytes` bytes are not 0xFF; fills them with 1.
__device__ inline unsigned count_stale(void* memory, unsigned bytes) {
  unsigned char* const byte = static_cast<unsigned char*>(memory);
  unsigned stale = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    stale += byte[i] != 0xFF;
    byte[i] = 1;
  }
  return stale;
}

__device__ inline unsigned count_stale_in_inline_function() {
  __shared__ double memory[37];
  return count_stale(memory, sizeof memory);
}
