/// @file constant_memory.hpp
/// @brief Constant memory belongs to the process, not to a run: runs in several streams use it in
/// turn.
#pragma once

#include <mutex>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// The exclusive use of constant memory by one run: from writing it to the end of the kernels that
/// read it. Runs in other streams wait for these kernels on the device. If runs are recorded into
/// CUDA graphs, the caller must ensure that two such graphs never run concurrently.
class ConstantMemoryTurn {
 public:
  ConstantMemoryTurn() : lock_(mutex()), is_recorded_(is_recorded()) {
    if (!is_recorded_) check(cudaStreamWaitEvent(current_stream(), last_read()));
  }
  ConstantMemoryTurn(const ConstantMemoryTurn&) = delete;
  ConstantMemoryTurn& operator=(const ConstantMemoryTurn&) = delete;
  ~ConstantMemoryTurn() {
    // A failure here was caused by an earlier call, which has reported it.
    if (!is_recorded_) static_cast<void>(cudaEventRecord(last_read(), current_stream()));
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  /// Kept until the program ends: CUDA may be shut down before it.
  static cudaEvent_t last_read() {
    static const cudaEvent_t event = [] {
      cudaEvent_t made = nullptr;
      check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
      return made;
    }();
    return event;
  }
  static bool is_recorded() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(current_stream(), &status));
    return status != cudaStreamCaptureStatusNone;
  }

  std::lock_guard<std::mutex> lock_;
  bool is_recorded_;
};

}  // namespace convladder::BACKEND
