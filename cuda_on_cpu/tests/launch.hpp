/// @file
/// @brief Helpers of the tests.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_on_cpu/control.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

/// AddressSanitizer reports a kernel's overrun itself, and then ends the process.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_SANITIZED
#endif
#if defined(CUDA_ON_CPU_SANITIZED)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// Starts each test from the defaults and clears its errors.
struct Defaults {
  Defaults() { cuda_on_cpu::control::reset(); }
  ~Defaults() { cuda_on_cpu::control::reset(); }
  Defaults(const Defaults&) = delete;
  Defaults& operator=(const Defaults&) = delete;
};

struct Shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
};

template <class... Params, class... Args>
cudaError_t launch(void (*kernel)(Params...), const Shape& shape, Args&&... args) {
  const cudaLaunchConfig_t config{shape.grid, shape.block, shape.shared_bytes, nullptr, nullptr, 0};
  return cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

template <class... Params, class... Args>
cudaError_t launch_cooperatively(void (*kernel)(Params...), const Shape& shape, Args&&... args) {
  cudaLaunchAttribute attribute{cudaLaunchAttributeCooperative, {}};
  attribute.val.cooperative = 1;
  const cudaLaunchConfig_t config{shape.grid, shape.block, shape.shared_bytes,
                                  nullptr,    &attribute,  1};
  return cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

template <class... Params, class... Args>
cudaError_t launch_in_clusters(dim3 cluster, void (*kernel)(Params...), const Shape& shape,
                               Args&&... args) {
  cudaLaunchAttribute attribute{cudaLaunchAttributeClusterDimension, {}};
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  const cudaLaunchConfig_t config{shape.grid, shape.block, shape.shared_bytes,
                                  nullptr,    &attribute,  1};
  return cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

/// An array in device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) { cudaMalloc(&data_, size * sizeof(T)); }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> copy(size_);
    cudaMemcpy(copy.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return copy;
  }
  T first() const { return host().front(); }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

/// "file.cu:12" for the line of a kernel's source with `mark` in brackets.
inline std::string place_of(const std::string& file, const std::string& mark) {
  std::ifstream source(std::filesystem::path(CUDA_ON_CPU_TESTS_DIR) / file);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (line.find("[" + mark + "]") != std::string::npos)
      return file + ":" + std::to_string(number);
  }
  return "no line marked [" + mark + "] in " + file;
}

/// Whether the last report contains all these texts.
template <class... Texts>
bool report_names(const Texts&... texts) {
  const std::string report = cuda_on_cpu::control::last_report();
  return ((report.find(texts) != std::string::npos) && ...);
}
