/// @file
/// @brief Launching a kernel, and querying its attributes.
#pragma once

#include <cuda_on_cpu/runtime_types.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda_on_cpu {
namespace detail {

/// A kernel with its arguments, type-erased: `call(arguments)` executes one thread.
struct BoundKernel {
  const void* function;
  void (*call)(const void* arguments);
  const void* arguments;
};

/// Checks the configuration like CUDA, runs the whole grid, and checks the guard bands.
cudaError_t launch(const cudaLaunchConfig_t& config, const BoundKernel& kernel);

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value);
cudaError_t get_function_attributes(cudaFuncAttributes* attributes, const void* function);

template <class... Params>
cudaError_t launch_with(const cudaLaunchConfig_t& config, void (*kernel)(Params...),
                        const std::tuple<Params...>& arguments) {
  static_assert((!std::is_reference_v<Params> && ...), "a kernel takes its parameters by value");
  using Bound = std::pair<void (*)(Params...), const std::tuple<Params...>&>;
  const Bound bound{kernel, arguments};
  return launch(config, {reinterpret_cast<const void*>(kernel),
                         [](const void* erased) {
                           const Bound& b = *static_cast<const Bound*>(erased);
                           std::apply(b.first, b.second);
                         },
                         &bound});
}

}  // namespace detail

/// Runs `kernel(args...)` in every thread of the grid. Arguments are converted to the parameters'
/// types and copied once per launch; every thread then has its own copy.
template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               Args&&... args) {
  static_assert(sizeof...(Params) == sizeof...(Args),
                "as many arguments as the kernel has parameters");
  return detail::launch_with(
      *config, kernel, std::tuple<Params...>(static_cast<Params>(std::forward<Args>(args))...));
}

/// The older form: `args` is an array of pointers to the arguments, which have the parameters'
/// types.
template <class... Params>
cudaError_t cudaLaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, nullptr, 0};
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return detail::launch_with(config, kernel,
                               std::tuple<Params...>(*static_cast<Params*>(args[i])...));
  }(std::index_sequence_for<Params...>{});
}

/// Like cudaLaunchKernel, with the whole grid resident at once.
template <class... Params>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Params...), dim3 grid, dim3 block,
                                        void** args, std::size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  cudaLaunchAttribute cooperative{cudaLaunchAttributeCooperative, {}};
  cooperative.val.cooperative = 1;
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, &cooperative, 1};
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return detail::launch_with(config, kernel,
                               std::tuple<Params...>(*static_cast<Params*>(args[i])...));
  }(std::index_sequence_for<Params...>{});
}

template <class... Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute attribute,
                                 int value) {
  return detail::set_function_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Params>
cudaError_t cudaFuncSetCacheConfig(void (*)(Params...), cudaFuncCache) {
  return cudaSuccess;
}
/// The numbers of registers and bytes of local memory are unknown and read as 0.
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return detail::get_function_attributes(attributes, kernel);
}
template <class... Params>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Params...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}

/// Blocks that fit on an SM of the model device by threads and dynamic shared memory (registers and
/// static shared memory are unknown).
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_threads,
                                                          std::size_t shared_bytes);
template <class... Params>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(Params...),
                                                          int block_threads,
                                                          std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), block_threads, shared_bytes);
}

}  // namespace cuda_on_cpu
