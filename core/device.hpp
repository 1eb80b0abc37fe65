/// @file device.hpp
/// @brief The places where rungs run, as programs use them: memory, copies and synchronisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/implementation.hpp"
#include "core/where.hpp"

namespace convladder {

/// Memory and copies of one place. All calls wait for earlier work of this device.
class Device {
 public:
  virtual ~Device() = default;

  /// The place of this device.
  virtual Where where() const = 0;
  /// The processor's or GPU's name.
  virtual std::string name() const = 0;
  /// Of a GPU or its model, 10 * major + minor; 0 for the processor.
  virtual int compute_capability() const { return 0; }
  /// An estimate of the bytes that can be allocated now.
  virtual std::size_t free_bytes() const = 0;

  /// Uninitialised memory, aligned to 256 bytes. @throws std::bad_alloc when there is not enough.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Frees memory from allocate().
  virtual void release(void* memory) = 0;
  /// Copies from the host to this device.
  virtual void upload(void* to_device, const void* from_host, std::size_t bytes) = 0;
  /// Copies from this device to the host.
  virtual void download(void* to_host, const void* from_device, std::size_t bytes) = 0;
  /// A stream other than the default one, for Context::stream; null if there are none.
  virtual CUstream_st* make_stream() = 0;
  /// Destroys a stream from make_stream().
  virtual void release_stream(CUstream_st* stream) = 0;
  /// Waits for all work. @throws DeviceError if any of it failed.
  virtual void synchronize() = 0;
};

/// The device of that place; null if there is none (no GPU, or a build without CUDA).
Device* device_at(Where where);

/// The reason why device_at(Where::gpu) is null: "no NVIDIA driver", "built without nvcc", ...
std::string why_no_gpu();

// The two CUDA devices: core/cuda/device.cu is compiled once for each.
namespace emulated {
/// cuda_on_cpu's device; never null.
Device* cuda_device();
/// For symmetry with gpu: never called, because the device always exists.
std::string why_no_device();
}  // namespace emulated

namespace gpu {
/// The first GPU; null if there is none.
Device* cuda_device();
/// The reason why there is none, in CUDA's words.
std::string why_no_device();
}  // namespace gpu

}  // namespace convladder
