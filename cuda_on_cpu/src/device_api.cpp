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

int model::multiprocessors() {
  return number_in_environment("CUDA_ON_CPU_MULTIPROCESSORS", current_settings().multiprocessors);
}

int model::blocks_per_sm(unsigned block_threads, std::size_t dynamic_shared_bytes) {
  const control::DeviceModel& device = control::device_model();
  const int warps = (static_cast<int>(block_threads) + kWarp - 1) / kWarp;
  const int by_threads = device.threads_per_sm / (warps * kWarp);
  const std::size_t bytes = dynamic_shared_bytes + device.shared_reserved;
  const int by_shared = bytes == 0 ? device.blocks_per_sm : as_int(device.shared_per_sm / bytes);
  return std::min({by_threads, by_shared, device.blocks_per_sm});
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
  const control::DeviceModel& device_model = control::device_model();
  std::strcpy(p.name, "cuda_on_cpu");
  {
    DeviceArena& arena = DeviceArena::instance();
    const DeviceArena::Lock lock(arena);
    p.totalGlobalMem = arena.limit();
  }
  p.sharedMemPerBlock = device_model.shared_per_block;
  p.regsPerBlock = p.regsPerMultiprocessor = device_model.registers_per_sm;
  p.warpSize = model::kWarp;
  p.maxThreadsPerBlock = static_cast<int>(model::kThreadsPerBlock);
  std::copy(std::begin(model::kBlockDim), std::end(model::kBlockDim), p.maxThreadsDim);
  std::copy(std::begin(model::kGridDim), std::end(model::kGridDim), p.maxGridSize);
  p.totalConstMem = model::kConstant;
  p.major = device_model.compute_capability / 10;
  p.minor = device_model.compute_capability % 10;
  p.multiProcessorCount = model::multiprocessors();
  p.l2CacheSize = as_int(device_model.l2_bytes);
  p.maxThreadsPerMultiProcessor = device_model.threads_per_sm;
  p.maxBlocksPerMultiProcessor = device_model.blocks_per_sm;
  p.sharedMemPerMultiprocessor = device_model.shared_per_sm;
  p.sharedMemPerBlockOptin = device_model.shared_per_block_optin();
  p.reservedSharedMemPerBlock = device_model.shared_reserved;
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
  const control::DeviceModel& device_model = control::device_model();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return answer(model::kThreadsPerBlock);
    case cudaDevAttrMaxBlockDimX: return answer(model::kBlockDim[0]);
    case cudaDevAttrMaxBlockDimY: return answer(model::kBlockDim[1]);
    case cudaDevAttrMaxBlockDimZ: return answer(model::kBlockDim[2]);
    case cudaDevAttrMaxGridDimX: return answer(model::kGridDim[0]);
    case cudaDevAttrMaxGridDimY: return answer(model::kGridDim[1]);
    case cudaDevAttrMaxGridDimZ: return answer(model::kGridDim[2]);
    case cudaDevAttrMaxSharedMemoryPerBlock: return answer(device_model.shared_per_block);
    case cudaDevAttrTotalConstantMemory: return answer(model::kConstant);
    case cudaDevAttrWarpSize: return answer(model::kWarp);
    case cudaDevAttrMaxRegistersPerBlock: return answer(device_model.registers_per_sm);
    case cudaDevAttrMultiProcessorCount: return answer(model::multiprocessors());
    case cudaDevAttrL2CacheSize: return answer(device_model.l2_bytes);
    case cudaDevAttrMaxThreadsPerMultiProcessor: return answer(device_model.threads_per_sm);
    case cudaDevAttrComputeCapabilityMajor: return answer(device_model.compute_capability / 10);
    case cudaDevAttrComputeCapabilityMinor: return answer(device_model.compute_capability % 10);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return answer(device_model.shared_per_sm);
    case cudaDevAttrMaxRegistersPerMultiprocessor: return answer(device_model.registers_per_sm);
    case cudaDevAttrCooperativeLaunch: return answer(1);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return answer(device_model.shared_per_block_optin());
    case cudaDevAttrMaxBlocksPerMultiprocessor: return answer(device_model.blocks_per_sm);
    case cudaDevAttrReservedSharedMemoryPerBlock: return answer(device_model.shared_reserved);
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
