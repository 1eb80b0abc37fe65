#include "core/device.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>

namespace convladder {
namespace {

constexpr std::size_t kAlignment = 256;  // the alignment of cudaMalloc

/// The host itself.
class CpuDevice final : public Device {
 public:
  Where where() const override { return Where::cpu; }

  std::string name() const override {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "CPU";
  }

  std::size_t free_bytes() const override {
    // Linux's own estimate counts the file cache as available, because it can be reclaimed.
    std::ifstream info("/proc/meminfo");
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
    }
    return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

  void* allocate(std::size_t bytes) override {
    return ::operator new(bytes, std::align_val_t{kAlignment});
  }
  void release(void* memory) override { ::operator delete(memory, std::align_val_t{kAlignment}); }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  CUstream_st* make_stream() override { return nullptr; }
  void release_stream(CUstream_st*) override {}
  void synchronize() override {}

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);  // the pointers of an empty array may be null
  }
};

}  // namespace

Device* device_at(Where where) {
  static CpuDevice cpu;
  switch (where) {
    case Where::cpu: return &cpu;
    case Where::emulated: return emulated::cuda_device();
    case Where::gpu:
#ifdef CONVLADDER_HAVE_NVCC
      return gpu::cuda_device();
#else
      return nullptr;
#endif
  }
  return nullptr;
}

std::string why_no_gpu() {
#ifdef CONVLADDER_HAVE_NVCC
  return gpu::why_no_device();
#else
  return "built without nvcc";
#endif
}

}  // namespace convladder
