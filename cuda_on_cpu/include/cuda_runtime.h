/// @file
/// @brief CUDA's runtime header for a C++20 compiler: kernels run on the CPU. See
/// cuda_on_cpu/README.md.
///
/// All names are in namespace cuda_on_cpu, so that one program can contain these kernels and, in
/// other files compiled by nvcc, the real runtime.
#pragma once

#if defined(__CUDACC__)
#error "cuda_on_cpu's <cuda_runtime.h> stands before the CUDA toolkit's on nvcc's include path"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_on_cpu/atomics.hpp>
#include <cuda_on_cpu/builtins.hpp>
#include <cuda_on_cpu/launch.hpp>
#include <cuda_on_cpu/math.hpp>
#include <cuda_on_cpu/qualifiers.hpp>
#include <cuda_on_cpu/runtime_api.hpp>
#include <cuda_on_cpu/static_shared.hpp>

using namespace cuda_on_cpu;
