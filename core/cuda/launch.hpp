/// @file launch.hpp
/// @brief Common functions of every .cu file: checked calls and launches, dynamic shared memory.
///
/// A .cu file is compiled up to twice: by nvcc for a GPU, and by the C++ compiler against
/// cuda_on_cpu, which runs it on the CPU. BACKEND is the namespace that separates the two.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/implementation.hpp"

/// @def BACKEND
/// The namespace of everything in a .cu file: `gpu` under nvcc, `emulated` on the CPU.
#ifdef __CUDACC__
#define BACKEND gpu
#else
#include <cuda_on_cpu/control.hpp>
#ifndef BACKEND  // tests give copies of kernels with planted bugs other namespaces
#define BACKEND emulated
#endif
#endif

namespace convladder::BACKEND {

/// @throws DeviceError with CUDA's message and the caller's location unless `code` is cudaSuccess.
inline void check(cudaError_t code,
                  const std::source_location& caller = std::source_location::current()) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // CUDA also records the error: clear it, because it is reported here
  std::string report;
#ifndef __CUDACC__
  report = cuda_on_cpu::control::last_report();
  if (!report.empty()) report = "; " + report;
#endif
  throw DeviceError(std::string(caller.file_name()) + ":" + std::to_string(caller.line()) + ": " +
                    cudaGetErrorName(code) + ": " + cudaGetErrorString(code) + report);
}

/// The launch parameters between <<< and >>>, and the location of the launch.
struct LaunchConfig {
  dim3 grid;                               ///< blocks along x, y, z
  dim3 block;                              ///< threads of a block along x, y, z
  std::size_t shared_bytes = 0;            ///< dynamic shared memory per block
  cudaStream_t stream = current_stream();  ///< that of the run by default
  /// location of the launch in the source, for messages
  std::source_location caller = std::source_location::current();
};

/// Shared memory that a block can use without opt-in, including declared variables.
inline constexpr std::size_t kDefaultSharedBytes = 48 * 1024;
/// The most with opt-in on compute capability 7.5, the oldest that is supported.
inline constexpr std::size_t kMaxSharedBytes = 64 * 1024;

inline constexpr std::int64_t kMaxGridX = 2147483647;  ///< The most blocks along grid.x.
inline constexpr std::int64_t kMaxGridYZ = 65535;      ///< The most along grid.y and grid.z.

/// Bytes that a kernel declares as __shared__. The query takes microseconds, so it is made once per
/// kernel.
inline std::size_t declared_shared_bytes(const void* kernel) {
  static std::mutex mutex;
  static std::map<const void*, std::size_t> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(kernel); found != known.end()) return found->second;
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
  return known[kernel] = attributes.sharedSizeBytes;
}

/// Like launch(), with a launch attribute of CUDA, or null.
template <class... Parameters, class... Values>
void launch_with(cudaLaunchAttribute* attribute, void (*kernel)(Parameters...),
                 const LaunchConfig& config, Values&&... arguments) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  // Declared variables count, too. They are queried only if it matters.
  if (config.shared_bytes > kDefaultSharedBytes ||
      (config.shared_bytes > 0 &&
       config.shared_bytes + declared_shared_bytes(reinterpret_cast<const void*>(kernel)) >
           kDefaultSharedBytes)) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(config.shared_bytes)),
          config.caller);
  }
  cudaLaunchConfig_t cuda_config{};
  cuda_config.gridDim = config.grid;
  cuda_config.blockDim = config.block;
  cuda_config.dynamicSmemBytes = config.shared_bytes;
  cuda_config.stream = config.stream;
  cuda_config.attrs = attribute;
  cuda_config.numAttrs = attribute != nullptr ? 1 : 0;
  check(cudaLaunchKernelEx(&cuda_config, kernel, std::forward<Values>(arguments)...),
        config.caller);
}

/// `kernel<<<grid, block, shared_bytes, stream>>>(arguments...)` in plain C++, with an error check.
/// A grid without blocks, which CUDA refuses, is not launched.
/// @throws DeviceError if CUDA refuses the launch.
template <class... Parameters, class... Values>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Values&&... arguments) {
  launch_with(nullptr, kernel, config, std::forward<Values>(arguments)...);
}

/// The number of blocks of `threads` threads for `work` items, at most `limit`: with more items
/// than threads, the kernel must use a grid-stride loop. grid.x is limited to 2^31 - 1 blocks,
/// grid.y and grid.z to 65535.
inline unsigned blocks_for(std::int64_t work, int threads, std::int64_t limit = kMaxGridX) {
  if (limit < kMaxGridX) limit = std::min(limit, max_strided_blocks);
  return static_cast<unsigned>(std::min(ceil_div<std::int64_t>(work, threads), limit));
}

/// This block's dynamic shared memory of LaunchConfig::shared_bytes bytes, aligned to 16 bytes.
template <class T>
__device__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ uint4 dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
#else
  return static_cast<T*>(cuda_on_cpu::dynamic_shared_memory());
#endif
}

}  // namespace convladder::BACKEND
