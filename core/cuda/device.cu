/// @file device.cu
/// @brief A CUDA device for programs: compiled by nvcc for the GPU, and for cuda_on_cpu.
#include <new>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/device.hpp"

namespace convladder::BACKEND {
namespace {

class CudaDevice final : public Device {
 public:
  Where where() const override {
#ifdef __CUDACC__
    return Where::gpu;
#else
    return Where::emulated;
#endif
  }

  std::string name() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0));
    return properties.name;
  }

  int compute_capability() const override { return BACKEND::compute_capability(); }

  std::size_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    return free;
  }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t code = cudaMalloc(&memory, bytes);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    check(code);
    return memory;
  }

  void release(void* memory) override { check(cudaFree(memory)); }

  void upload(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }
  CUstream_st* make_stream() override {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  void release_stream(CUstream_st* stream) override { check(cudaStreamDestroy(stream)); }
  void synchronize() override { check(cudaDeviceSynchronize()); }

 private:
  /// In the stream of the current run, if there is one: it may create an output, which is filled
  /// there.
  static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes, kind, current_stream()));
    check(cudaStreamSynchronize(current_stream()));
  }
};

cudaError_t count_devices(int* count) {
  const cudaError_t code = cudaGetDeviceCount(count);
  cudaGetLastError();
  return code;
}

}  // namespace

Device* cuda_device() {
  static CudaDevice device;
  static const bool present = [] {
    int count = 0;
    return count_devices(&count) == cudaSuccess && count > 0;
  }();
  return present ? &device : nullptr;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t code = count_devices(&count);
  return code == cudaSuccess ? "CUDA finds no device" : cudaGetErrorString(code);
}

}  // namespace convladder::BACKEND
