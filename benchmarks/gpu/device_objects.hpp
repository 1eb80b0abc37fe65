/// @file device_objects.hpp
/// @brief Device memory, events and the pool of memory, as objects that clean up behind themselves.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::benchmarks {

/// Device memory, freed with this object.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t code = cudaMalloc(&data_, std::max<std::size_t>(bytes, 256));
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    gpu::check(code);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { static_cast<void>(cudaFree(data_)); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// An event with a time.
class Event {
 public:
  Event() { gpu::check(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  void record() const { gpu::check(cudaEventRecord(event_, rung_stream())); }
  /// Microseconds from `start` to this event, which must have been reached.
  double since(const Event& start) const {
    float milliseconds = 0;
    gpu::check(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Until the stream of rungs is done.
inline void wait() { gpu::check(cudaStreamSynchronize(rung_stream())); }

/// The memory that cudaMallocAsync() gives out. Kept, as applications keep it: by default each wait
/// for the GPU hands all of it back to the system, which takes longer than most runs.
class Pool {
 public:
  Pool() {
    gpu::check(cudaDeviceGetDefaultMemPool(&pool_, 0));
    set(cudaMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  }
  /// From now on most_used() counts anew.
  void forget() const { set(cudaMemPoolAttrUsedMemHigh, 0); }
  /// Bytes that were allocated at once.
  std::int64_t most_used() const {
    std::uint64_t bytes = 0;
    gpu::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &bytes));
    return static_cast<std::int64_t>(bytes);
  }

 private:
  void set(cudaMemPoolAttr attribute, std::uint64_t value) const {
    gpu::check(cudaMemPoolSetAttribute(pool_, attribute, &value));
  }

  cudaMemPool_t pool_ = nullptr;
};

}  // namespace convladder::benchmarks
