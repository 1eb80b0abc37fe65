#include <chrono>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/runtime_api.hpp>
#include <mutex>
#include <set>
#include <string>

#include "error_state.hpp"
#include "streams.hpp"

struct CUstream_st {};

namespace cuda_on_cpu {

using Clock = std::chrono::steady_clock;

struct CUevent_st {
  bool timed;
  bool recorded = false;
  Clock::time_point time;
};

namespace {

/// The live handles of one kind, so that a stale handle is an error instead of a crash.
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
thread_local bool default_stream_is_forbidden = false;

bool is_stream(cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 || streams().has(stream);
}

}  // namespace

cudaError_t check_stream(cudaStream_t stream, const char* what) {
  if (stream == nullptr && default_stream_is_forbidden) {
    return remember(
        cudaErrorInvalidResourceHandle,
        std::string(what) + " is refused: it uses the default stream, which is forbidden here.");
  }
  return is_stream(stream) ? cudaSuccess : remember(cudaErrorInvalidResourceHandle);
}

control::ForbidDefaultStream::ForbidDefaultStream() : before_(default_stream_is_forbidden) {
  default_stream_is_forbidden = true;
}
control::ForbidDefaultStream::~ForbidDefaultStream() { default_stream_is_forbidden = before_; }

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
  const cudaError_t refused = check_stream(stream, "cudaStreamSynchronize");
  return refused == cudaSuccess ? take_kernel_error() : refused;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (!events().has(event)) return remember(cudaErrorInvalidResourceHandle);
  return check_stream(stream, "cudaStreamWaitEvent");
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  if (const cudaError_t refused = check_stream(stream, "cudaLaunchHostFunc");
      refused != cudaSuccess) {
    return refused;
  }
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
  if (!events().has(event)) return remember(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = check_stream(stream, "cudaEventRecord"); refused != cudaSuccess) {
    return refused;
  }
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
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (!is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (status == nullptr) return remember(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
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
