#include <cuda_runtime.h>

#include <cstddef>

#include "benchmarks/gpu/calls.hpp"

namespace convladder::benchmarks {
Calls counted_calls;
Calls calls() { return counted_calls; }

KernelLaunch largest;
void forget_largest_launch() { largest = {}; }
KernelLaunch largest_launch() { return largest; }

void note_launch(const KernelLaunch& launch) {
  if (launch.threads() > largest.threads()) largest = launch;
}
}  // namespace convladder::benchmarks

// The names behind CUDA's macros for --default-stream per-thread. CMakeLists.txt has the same list.
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
#define COUNTED(counter, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;    \
  extern "C" cudaError_t __wrap_##name parameters {   \
    ++convladder::benchmarks::counted_calls.counter;  \
    return __real_##name arguments;                   \
  }

extern "C" cudaError_t __real_cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config,
                                                       const void* kernel, void** arguments);
extern "C" cudaError_t __wrap_cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config,
                                                       const void* kernel, void** arguments) {
  ++convladder::benchmarks::counted_calls.launches;
  convladder::benchmarks::note_launch(
      {kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes});
  return __real_cudaLaunchKernelExC_ptsz(config, kernel, arguments);
}
extern "C" cudaError_t __real_cudaLaunchKernel_ptsz(const void* kernel, dim3 grid, dim3 block,
                                                    void** arguments, std::size_t shared,
                                                    cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaLaunchKernel_ptsz(const void* kernel, dim3 grid, dim3 block,
                                                    void** arguments, std::size_t shared,
                                                    cudaStream_t stream) {
  ++convladder::benchmarks::counted_calls.launches;
  convladder::benchmarks::note_launch({kernel, grid, block, shared});
  return __real_cudaLaunchKernel_ptsz(kernel, grid, block, arguments, shared, stream);
}
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
COUNTED(waits, cudaEventSynchronize, (cudaEvent_t event), (event))
COUNTED(waits, cudaDeviceSynchronize, (), ())
// NOLINTEND(bugprone-reserved-identifier)
