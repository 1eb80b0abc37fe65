#include <chrono>
#include <cuda_on_cpu/runtime_api.hpp>
#include <mutex>
#include <set>

#include "error_state.hpp"

namespace cuda_on_cpu {

using Clock = std::chrono::steady_clock;

struct CUstream_st {};

struct CUevent_st {
  bool timed;
  bool recorded = false;
  Clock::time_point time;
};

namespace {

/// The handles of a kind that are alive, so that a stale one is an error rather than a crash.
template <class Object>
class Handles {
 public:
  Object* add(Object* object) {
    const std::lock_guard lock(mutex_);
    return *alive_.insert(object).first;
  }
  bool has(Object* object) {
    const std::lock_guard lock(mutex_);
    return alive_.contains(object);
  }
  bool destroy(Object* object) {
    const std::lock_guard lock(mutex_);
    if (alive_.erase(object) == 0) return false;
    delete object;
    return true;
  }

 private:
  std::mutex mutex_;
  std::set<Object*> alive_;
};

Handles<CUstream_st>& streams() {
  static Handles<CUstream_st> handles;
  return handles;
}

Handles<CUevent_st>& events() {
  static Handles<CUevent_st> handles;
  return handles;
}

/// Null, 1 and 2 are CUDA's default streams.
bool is_stream(cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 || streams().has(stream);
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return remember(cudaErrorInvalidValue);
  *stream = streams().add(new CUstream_st);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return streams().destroy(stream) ? cudaSuccess : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return is_stream(stream) ? take_kernel_error() : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return is_stream(stream) && events().has(event) ? cudaSuccess
                                                  : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  if (!is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return remember(cudaErrorInvalidValue);
  function(user_data);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return remember(cudaErrorInvalidValue);
  *event = events().add(new CUevent_st{(flags & cudaEventDisableTiming) == 0, false, {}});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return events().destroy(event) ? cudaSuccess : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!events().has(event) || !is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  event->recorded = true;
  event->time = Clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return events().has(event) ? take_kernel_error() : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (milliseconds == nullptr) return remember(cudaErrorInvalidValue);
  for (const cudaEvent_t event : {start, stop}) {
    if (!events().has(event) || !event->timed || !event->recorded) {
      return remember(cudaErrorInvalidResourceHandle);
    }
  }
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return remember(cudaErrorNotSupported);
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  return remember(cudaErrorNotSupported);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return remember(cudaErrorNotSupported);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return remember(cudaErrorNotSupported);
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return remember(cudaErrorNotSupported); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return remember(cudaErrorNotSupported); }

}  // namespace cuda_on_cpu
