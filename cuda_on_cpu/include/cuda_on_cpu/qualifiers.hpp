/// @file
/// @brief CUDA's qualifiers as C++: what has no meaning here expands to nothing.
#pragma once

/// Defined wherever these headers stand in for the CUDA toolkit's.
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

// Empty rather than __attribute__((noinline)): libstdc++ writes __attribute__((__noinline__)),
// which stays well formed only if the macro expands to nothing.
#define __noinline__
