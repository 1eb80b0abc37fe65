/// @file device_array.hpp
/// @brief Device memory whose size a rung learns only while it runs.
#pragma once

#include <new>

#include "core/cuda/host_message.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Uninitialised elements on the device, freed with this object. Allocation and release are ordered
/// in the run's stream, so kernels that still read the elements complete first, without a wait on
/// the host.
template <class T>
class DeviceArray {
 public:
  /// @param count elements; 0 is allowed, data() is then null.
  /// @throws std::bad_alloc when there is not enough memory
  explicit DeviceArray(std::int64_t count) : stream_(current_stream()) {
    if (count == 0) return;
    void* memory = nullptr;
    const cudaError_t code =
        cudaMallocAsync(&memory, static_cast<std::size_t>(count) * sizeof(T), stream_);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    check(code);
    data_ = static_cast<T*>(memory);
  }
  /// Takes over the memory of `other`, which becomes empty.
  DeviceArray(DeviceArray&& other) noexcept
      : stream_(other.stream_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    // A failure here was caused by an earlier call, which has reported it.
    if (data_ != nullptr) static_cast<void>(cudaFreeAsync(data_, stream_));
  }

  /// The first element, on the device.
  T* data() const { return data_; }

 private:
  cudaStream_t stream_;
  T* data_ = nullptr;
};

/// Reads one element from the device through pinned memory. The host waits for all earlier work. A
/// kernel that writes the element itself can write it to a HostMessage instead.
template <class T>
T downloaded(const T* from_device) {
  HostMessage<T> message;
  check(cudaMemcpyAsync(&message.letter()->value, from_device, sizeof(T), cudaMemcpyDeviceToHost,
                        current_stream()));
  message.expect();
  return message.received();
}

/// Copies elements to the host, and waits for the copy.
template <class T>
void download(const T* from_device, std::size_t count, T* to) {
  check(cudaMemcpyAsync(to, from_device, count * sizeof(T), cudaMemcpyDeviceToHost,
                        current_stream()));
  check(cudaStreamSynchronize(current_stream()));
}

}  // namespace convladder::BACKEND
