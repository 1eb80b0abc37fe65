#include "function_attributes.hpp"

#include <algorithm>
#include <cuda_on_cpu/launch.hpp>
#include <map>
#include <mutex>

#include "error_state.hpp"
#include "model_device.hpp"

namespace cuda_on_cpu {
namespace {

std::mutex mutex;

std::map<const void*, std::size_t>& limits() {
  static std::map<const void*, std::size_t> by_function;
  return by_function;
}

}  // namespace

std::size_t max_dynamic_shared(const void* function) {
  const std::lock_guard lock(mutex);
  const auto found = limits().find(function);
  return found == limits().end() ? model::kSharedPerBlock : found->second;
}

void forget_function_attributes() {
  const std::lock_guard lock(mutex);
  limits().clear();
}

cudaError_t detail::set_function_attribute(const void* function, cudaFuncAttribute attribute,
                                           int value) {
  if (function == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // hints
  if (value < 0 || static_cast<std::size_t>(value) > model::kSharedPerBlockOptin) {
    return remember(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(mutex);
  // A smaller value does not take away what every kernel may use.
  limits()[function] = std::max(static_cast<std::size_t>(value), model::kSharedPerBlock);
  return cudaSuccess;
}

cudaError_t detail::get_function_attributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return remember(cudaErrorInvalidValue);
  if (function == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(model::kThreadsPerBlock);
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(max_dynamic_shared(function));
  return cudaSuccess;
}

}  // namespace cuda_on_cpu
