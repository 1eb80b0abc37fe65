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

/// Calls body(NUMBER{}): this program's numbers are of that type.
template <class Body>
decltype(auto) with_half_type(DType dtype, const Body& body) {
  if (dtype != DType::FORMAT) throw std::logic_error("numbers of another type");
  return body(NUMBER{});
}

/// Calls body(NUMBER{}): this program's numbers are of that type.
template <class Body>
decltype(auto) with_any_float_type(DType dtype, const Body& body) {
  if (dtype != DType::FORMAT) throw std::logic_error("numbers of another type");
  return body(NUMBER{});
}

/// The product of the factors.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors,
                                    const std::string&) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) product *= factor;
  return product;
}

/// The type of a product's result.
template <class T>
using ProductOf = T;

}  // namespace convladder

namespace convladder::BACKEND {

/// Throws CUDA's text unless `code` is cudaSuccess.
inline void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

/// A function of the driver, found at run time.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  return reinterpret_cast<Function*>(found);
}

/// Throws `what` unless the driver has made a tensor map.
inline void check_encoded(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(what);
}

/// A message in the memory of the host, as kernels see it.
template <class T>
struct Letter {
  T value;  ///< What is told.

  /// One thread of a kernel tells it.
  __device__ void send(const T& told) { value = told; }
};

/// A number that a kernel finds out and the host needs before the run can go on. All zeros until it
/// is written.
template <class T>
class HostMessage {
 public:
  HostMessage() {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(T), cudaHostAllocPortable));
    letter_ = static_cast<Letter<T>*>(memory);
    *letter_ = Letter<T>{};
  }
  HostMessage(const HostMessage&) = delete;
  HostMessage& operator=(const HostMessage&) = delete;
  ~HostMessage() { cudaFreeHost(letter_); }

  /// Where to write it, on the device.
  Letter<T>* letter() const { return letter_; }
  /// To be called behind the launch, or the copy to letter()->value, that writes it.
  void expect() const {}
  /// Waits for what was launched.
  T received() {
    check(cudaStreamSynchronize(nullptr));
    return letter_->value;
  }

 private:
  Letter<T>* letter_;
};

/// The launch parameters between <<< and >>>.
struct LaunchConfig {
  dim3 grid, block;              ///< Blocks along x, y, z, and threads of a block.
  std::size_t shared_bytes = 0;  ///< Dynamic shared memory of a block.
};

/// `kernel<<<grid, block, shared_bytes>>>(arguments...)`, with the error checks. A grid without
/// blocks, which CUDA refuses, is no launch.
template <class... Parameters, class... Values>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Values&&... arguments) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  if (config.shared_bytes > 48 * 1024) {  // as much as a kernel may have without asking
    const auto bytes = static_cast<int>(config.shared_bytes);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }
  const cudaLaunchConfig_t launched{config.grid, config.block, config.shared_bytes};
  check(cudaLaunchKernelEx(&launched, kernel, static_cast<Values&&>(arguments)...));
}

/// The same with an attribute of CUDA's.
template <class... Parameters, class... Values>
void launch_with(cudaLaunchAttribute* attribute, void (*kernel)(Parameters...),
                 const LaunchConfig& config, Values&&... arguments) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(config.shared_bytes)));
  const cudaLaunchConfig_t launched{config.grid, config.block, config.shared_bytes,
                                    nullptr,     attribute,    1};
  check(cudaLaunchKernelEx(&launched, kernel, static_cast<Values&&>(arguments)...));
}

/// Blocks of `threads` threads for `work` items, at most `limit`: with more items than threads, a
/// kernel uses a grid-stride loop.
inline unsigned blocks_for(std::int64_t work, int threads, std::int64_t limit = kMaxGridX) {
  const std::int64_t blocks = ceil_div<std::int64_t>(work, threads);
  return static_cast<unsigned>(blocks < limit ? blocks : limit);
}

/// Of `count` items, those of this thread of a one-dimensional grid, for range-based loops: its
/// number, and from there on every one as far as there are threads.
template <unsigned kThreads>
struct GridStride {
  std::int64_t number, step, count;  ///< This one, threads of the grid, and the limit.

  __device__ GridStride begin() const { return *this; }
  __device__ std::int64_t end() const { return count; }
  __device__ std::int64_t operator*() const { return number; }
  __device__ void operator++() { number += step; }
  __device__ bool operator!=(std::int64_t end) const { return number < end; }
};

/// Written out:
///
///     for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
///          i += std::int64_t{gridDim.x} * blockDim.x)
template <unsigned kThreads = 0>
__device__ inline GridStride<kThreads> grid_stride(std::int64_t count) {
  return {std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, std::int64_t{gridDim.x} * blockDim.x,
          count};
}

/// Enough for a large GPU.
inline std::int64_t enough_blocks(std::int64_t count) { return count; }

}  // namespace convladder::BACKEND
