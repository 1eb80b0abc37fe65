/// @file short.hpp
/// @brief Shorter declarations for a program that runs one problem in the default stream: each
/// replaces those with the same name and namespace. NUMBER is the type of the problem's elements,
/// FORMAT its DType.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#define HOST_DEVICE __host__ __device__

namespace convladder {

/// The address of an array, or null. It converts to a pointer of the problem's element type.
template <class Void>
struct Elements {
  Void* data = nullptr;  ///< The first element.

  Elements(Void* first = nullptr) : data(first) {}
  explicit operator bool() const { return data != nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  operator T*() const {
    return as<T>();
  }
};

/// The context of a run beside its arrays.
struct Context {
  cudaStream_t stream = nullptr;  ///< The default stream.
  void* workspace = nullptr;      ///< The number of bytes from workspace_bytes().

  template <class T>
  T* workspace_as() const {
    return static_cast<T*>(workspace);
  }
};

/// The default stream.
inline cudaStream_t current_stream() { return nullptr; }

/// The implementation of a rung; another rung calls it like a function.
template <class A>
struct Implementation {
  using Problem = typename A::Problem;

  Declined (*supports)(const Problem&) = nullptr;
  std::size_t (*workspace_bytes)(const Problem&) = nullptr;
  void (*run)(const Problem&, const A&, const Context&) = nullptr;
  void (*finish)(const Problem&, const A&, const Context&) = nullptr;
  OutputTile (*tile)(const Problem&) = nullptr;
  std::string (*choice)(const Problem&) = nullptr;

  void operator()(const Problem& problem, const A& arrays, const Context& context = {}) const {
    run(problem, arrays, context);
  }
};

/// Calls body(NUMBER{}): this program's elements have that type.
template <class Body>
decltype(auto) with_float_type(DType dtype, const Body& body) {
  if (dtype != DType::FORMAT) throw std::logic_error("numbers of another type");
  return body(NUMBER{});
}

/// The same.
template <class Body>
decltype(auto) with_half_type(DType dtype, const Body& body) {
  if (dtype != DType::FORMAT) throw std::logic_error("numbers of another type");
  return body(NUMBER{});
}

/// The same.
template <class Body>
decltype(auto) with_any_float_type(DType dtype, const Body& body) {
  if (dtype != DType::FORMAT) throw std::logic_error("numbers of another type");
  return body(NUMBER{});
}

/// The type of a GEMM's result.
template <class T>
using ProductOf = T;

}  // namespace convladder

namespace convladder::BACKEND {

/// Throws CUDA's text unless `code` is cudaSuccess.
inline void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

/// The launch parameters between <<< and >>>.
struct LaunchConfig {
  dim3 grid, block;               ///< Blocks along x, y, z, and threads of a block.
  std::size_t shared_bytes = 0;   ///< Dynamic shared memory of a block.
  cudaStream_t stream = nullptr;  ///< The default stream.
};

/// `kernel<<<grid, block, shared_bytes, stream>>>(arguments...)`, with the error checks. A grid
/// without blocks, which CUDA refuses, is no launch.
template <class... Parameters, class... Values>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Values&&... arguments) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(config.shared_bytes)));
  const cudaLaunchConfig_t launched{config.grid, config.block, config.shared_bytes, config.stream};
  check(cudaLaunchKernelEx(&launched, kernel, static_cast<Values&&>(arguments)...));
}

/// The same with an attribute of CUDA's.
template <class... Parameters, class... Values>
void launch_with(cudaLaunchAttribute* attribute, void (*kernel)(Parameters...),
                 const LaunchConfig& config, Values&&... arguments) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(config.shared_bytes)));
  const cudaLaunchConfig_t launched{config.grid,   config.block, config.shared_bytes,
                                    config.stream, attribute,    1};
  check(cudaLaunchKernelEx(&launched, kernel, static_cast<Values&&>(arguments)...));
}

/// Blocks of `threads` threads for `work` items, at most `limit`: with more items than threads, a
/// kernel uses a grid-stride loop.
inline unsigned blocks_for(std::int64_t work, int threads, std::int64_t limit = kMaxGridX) {
  const std::int64_t blocks = ceil_div<std::int64_t>(work, threads);
  return static_cast<unsigned>(blocks < limit ? blocks : limit);
}

/// Enough for a large GPU.
inline std::int64_t enough_blocks(std::int64_t count) { return count; }

}  // namespace convladder::BACKEND
