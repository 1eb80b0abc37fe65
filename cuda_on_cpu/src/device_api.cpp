#include <algorithm>
#include <cstring>
#include <cuda_on_cpu/launch.hpp>
#include <cuda_on_cpu/runtime_api.hpp>

#include "device_arena.hpp"
#include "error_state.hpp"
#include "function_attributes.hpp"
#include "model_device.hpp"
#include "settings.hpp"

namespace cuda_on_cpu {
namespace {

constexpr int kCudaVersion = 13000;

constexpr int as_int(std::size_t value) { return static_cast<int>(value); }

}  // namespace

int model::multiprocessors() { return number_in_environment("CUDA_ON_CPU_MULTIPROCESSORS", 8); }

int model::blocks_per_sm(unsigned block_threads, std::size_t dynamic_shared_bytes) {
  const int warps = (static_cast<int>(block_threads) + kWarp - 1) / kWarp;
  const int by_threads = kThreadsPerSm / (warps * kWarp);
  const int by_shared = as_int(kSharedPerSm / (dynamic_shared_bytes + kSharedReserved));
  return std::min({by_threads, by_shared, kBlocksPerSm});
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return remember(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return remember(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : remember(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return remember(cudaErrorInvalidValue);
  if (device != 0) return remember(cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  std::strcpy(p.name, "cuda_on_cpu");
  {
    DeviceArena& arena = DeviceArena::instance();
    const DeviceArena::Lock lock(arena);
    p.totalGlobalMem = arena.limit();
  }
  p.sharedMemPerBlock = model::kSharedPerBlock;
  p.regsPerBlock = p.regsPerMultiprocessor = model::kRegisters;
  p.warpSize = model::kWarp;
  p.maxThreadsPerBlock = static_cast<int>(model::kThreadsPerBlock);
  std::copy(std::begin(model::kBlockDim), std::end(model::kBlockDim), p.maxThreadsDim);
  std::copy(std::begin(model::kGridDim), std::end(model::kGridDim), p.maxGridSize);
  p.totalConstMem = model::kConstant;
  const int capability = current_settings().compute_capability;
  p.major = capability / 10;
  p.minor = capability % 10;
  p.multiProcessorCount = model::multiprocessors();
  p.l2CacheSize = model::kL2Bytes;
  p.maxThreadsPerMultiProcessor = model::kThreadsPerSm;
  p.maxBlocksPerMultiProcessor = model::kBlocksPerSm;
  p.sharedMemPerMultiprocessor = model::kSharedPerSm;
  p.sharedMemPerBlockOptin = model::kSharedPerBlockOptin;
  p.reservedSharedMemPerBlock = model::kSharedReserved;
  p.cooperativeLaunch = 1;
  p.unifiedAddressing = 1;
  p.managedMemory = 1;
  p.integrated = 1;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return remember(cudaErrorInvalidValue);
  if (device != 0) return remember(cudaErrorInvalidDevice);
  const auto answer = [value](auto number) {
    *value = static_cast<int>(number);
    return cudaSuccess;
  };
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return answer(model::kThreadsPerBlock);
    case cudaDevAttrMaxBlockDimX: return answer(model::kBlockDim[0]);
    case cudaDevAttrMaxBlockDimY: return answer(model::kBlockDim[1]);
    case cudaDevAttrMaxBlockDimZ: return answer(model::kBlockDim[2]);
    case cudaDevAttrMaxGridDimX: return answer(model::kGridDim[0]);
    case cudaDevAttrMaxGridDimY: return answer(model::kGridDim[1]);
    case cudaDevAttrMaxGridDimZ: return answer(model::kGridDim[2]);
    case cudaDevAttrMaxSharedMemoryPerBlock: return answer(model::kSharedPerBlock);
    case cudaDevAttrTotalConstantMemory: return answer(model::kConstant);
    case cudaDevAttrWarpSize: return answer(model::kWarp);
    case cudaDevAttrMaxRegistersPerBlock: return answer(model::kRegisters);
    case cudaDevAttrMultiProcessorCount: return answer(model::multiprocessors());
    case cudaDevAttrL2CacheSize: return answer(model::kL2Bytes);
    case cudaDevAttrMaxThreadsPerMultiProcessor: return answer(model::kThreadsPerSm);
    case cudaDevAttrComputeCapabilityMajor:
      return answer(current_settings().compute_capability / 10);
    case cudaDevAttrComputeCapabilityMinor:
      return answer(current_settings().compute_capability % 10);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return answer(model::kSharedPerSm);
    case cudaDevAttrMaxRegistersPerMultiprocessor: return answer(model::kRegisters);
    case cudaDevAttrCooperativeLaunch: return answer(1);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return answer(model::kSharedPerBlockOptin);
    case cudaDevAttrMaxBlocksPerMultiprocessor: return answer(model::kBlocksPerSm);
    case cudaDevAttrReservedSharedMemoryPerBlock: return answer(model::kSharedReserved);
  }
  return remember(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize() { return take_kernel_error(); }

cudaError_t cudaDeviceReset() {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Access access(arena);
  while (!arena.live().empty()) arena.free(arena.live().begin()->second);
  forget_function_attributes();
  forget_errors();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_threads,
                                                          std::size_t shared_bytes) {
  if (blocks == nullptr || block_threads <= 0) return remember(cudaErrorInvalidValue);
  if (kernel == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  const bool fits = static_cast<unsigned>(block_threads) <= model::kThreadsPerBlock &&
                    shared_bytes <= max_dynamic_shared(kernel);
  *blocks = fits ? model::blocks_per_sm(static_cast<unsigned>(block_threads), shared_bytes) : 0;
  return cudaSuccess;
}

}  // namespace cuda_on_cpu
