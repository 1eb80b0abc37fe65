/// @file constant_memory.hpp
/// @brief Constant memory is the process's, not a run's: runs in several streams take turns.
#pragma once

#include <mutex>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// One run's turn to write constant memory and to launch the kernels that read it. Runs in other
/// streams wait for these kernels, on the device. Where runs are recorded into CUDA graphs, it is
/// up to the caller that two such graphs never run at once.
class ConstantMemoryTurn {
 public:
  ConstantMemoryTurn() : lock_(mutex()), is_recorded_(is_recorded()) {
    if (!is_recorded_) check(cudaStreamWaitEvent(current_stream(), last_read()));
  }
  ConstantMemoryTurn(const ConstantMemoryTurn&) = delete;
  ConstantMemoryTurn& operator=(const ConstantMemoryTurn&) = delete;
  ~ConstantMemoryTurn() {
    // A failure here is that of an earlier call, which was reported where it happened.
    if (!is_recorded_) static_cast<void>(cudaEventRecord(last_read(), current_stream()));
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  /// Stays until the program ends: CUDA may be gone before it.
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
