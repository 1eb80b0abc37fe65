#include <cuda_runtime.h>

#include <cstddef>

#include "benchmarks/gpu/calls.hpp"

namespace convladder::benchmarks {
Calls counted_calls;
Calls calls() { return counted_calls; }
}  // namespace convladder::benchmarks

// The names behind CUDA's macros for --default-stream per-thread. CMakeLists.txt has the same list.
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
#define COUNTED(counter, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;    \
  extern "C" cudaError_t __wrap_##name parameters {   \
    ++convladder::benchmarks::counted_calls.counter;  \
    return __real_##name arguments;                   \
  }

COUNTED(launches, cudaLaunchKernelExC_ptsz,
        (const cudaLaunchConfig_t* config, const void* kernel, void** arguments),
        (config, kernel, arguments))
COUNTED(launches, cudaLaunchKernel_ptsz,
        (const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
         cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream))
COUNTED(launches, cudaMemsetAsync_ptsz,
        (void* to, int value, std::size_t bytes, cudaStream_t stream), (to, value, bytes, stream))
COUNTED(launches, cudaMemcpyAsync_ptsz,
        (void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
        (to, from, bytes, kind, stream))
COUNTED(launches, cudaMemcpyToSymbolAsync_ptsz,
        (const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
         cudaMemcpyKind kind, cudaStream_t stream),
        (symbol, from, bytes, offset, kind, stream))
COUNTED(waits, cudaMemcpy_ptds,
        (void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind),
        (to, from, bytes, kind))
COUNTED(waits, cudaStreamSynchronize_ptsz, (cudaStream_t stream), (stream))
COUNTED(waits, cudaDeviceSynchronize, (), ())
// NOLINTEND(bugprone-reserved-identifier)
