#include "function_attributes.hpp"

#include <algorithm>
#include <cuda_on_cpu/launch.hpp>
#include <map>
#include <mutex>

#include "error_state.hpp"
#include "model_device.hpp"
#include "static_shared_registry.hpp"
#include "symbol_name.hpp"

namespace cuda_on_cpu {
namespace {

std::mutex mutex;

/// The limits set by cudaFuncSetAttribute.
std::map<const void*, std::size_t>& limits() {
  static std::map<const void*, std::size_t> by_function;
  return by_function;
}

}  // namespace

std::size_t max_dynamic_shared(const void* function) {
  return std::max(allowed_dynamic_shared(function),
                  control::device_model().shared_per_block - declared_shared(function));
}

std::size_t allowed_dynamic_shared(const void* function) {
  const std::lock_guard lock(mutex);
  const auto found = limits().find(function);
  return found == limits().end() ? 0 : found->second;
}

std::size_t declared_shared(const void* function) {
  const std::lock_guard lock(mutex);
  static std::map<const void*, std::size_t> by_function;
  const auto [found, is_new] = by_function.try_emplace(function, 0);
  if (is_new) {  // the same for every device
    found->second =
        std::min(static_shared_bytes(function), control::device_model().shared_per_block);
  }
  return found->second;
}

void forget_function_attributes() {
  const std::lock_guard lock(mutex);
  limits().clear();
}

cudaError_t detail::set_function_attribute(const void* function, cudaFuncAttribute attribute,
                                           int value) {
  if (function == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // hints
  const auto fits =
      [&, most = control::device_model().shared_per_block_optin()](std::size_t declared) {
        return value >= 0 && static_cast<std::size_t>(value) + declared <= most;
      };
  if (!fits(largest_static_shared()) && !fits(declared_shared(function))) {
    return remember(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(mutex);
  // A smaller value does not lower the default limit: see max_dynamic_shared().
  limits()[function] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t detail::get_function_attributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return remember(cudaErrorInvalidValue);
  if (function == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(model::kThreadsPerBlock);
  attributes->ptxVersion = attributes->binaryVersion = control::device_model().compute_capability;
  attributes->sharedSizeBytes = declared_shared(function);
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(max_dynamic_shared(function));
  return cudaSuccess;
}

}  // namespace cuda_on_cpu
