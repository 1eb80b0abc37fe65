/// @file
/// @brief CUDA's qualifiers as C++ macros: qualifiers without meaning in the emulator are empty.
#pragma once

/// Defined if these headers replace those of the CUDA toolkit.
#define CUDA_ON_CPU 1

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

// Empty instead of __attribute__((noinline)): libstdc++ writes __attribute__((__noinline__)), which
// remains valid only if the macro is empty.
#define __noinline__
