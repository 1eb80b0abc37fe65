#include "error_state.hpp"

#include <mutex>
#include <utility>

namespace cuda_on_cpu {
namespace {

/// CUDA keeps the last error per host thread.
thread_local cudaError_t last_error = cudaSuccess;

struct Shared {
  std::mutex mutex;
  cudaError_t kernel_error = cudaSuccess;
  std::string report;
};

Shared& shared() {
  static Shared state;
  return state;
}

}  // namespace

cudaError_t remember(cudaError_t error) {
  if (error == cudaSuccess) return error;
  return remember(error,
                  std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error) + ".");
}

cudaError_t remember(cudaError_t error, std::string report) {
  last_error = error;
  const std::lock_guard lock(shared().mutex);
  shared().report = std::move(report);
  return error;
}

cudaError_t remember_kernel_error(cudaError_t error, std::string report) {
  remember(error, std::move(report));
  const std::lock_guard lock(shared().mutex);
  return shared().kernel_error = error;
}

cudaError_t take_kernel_error() {
  const std::lock_guard lock(shared().mutex);
  return std::exchange(shared().kernel_error, cudaSuccess);
}

std::string last_report() {
  const std::lock_guard lock(shared().mutex);
  return shared().report;
}

void forget_errors() {
  last_error = cudaSuccess;
  const std::lock_guard lock(shared().mutex);
  shared().kernel_error = cudaSuccess;
  shared().report.clear();
}

cudaError_t cudaGetLastError() {
  static_cast<void>(take_kernel_error());
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CUDA_ON_CPU_ERROR(name, value, text) \
  case name: return #name;
#include <cuda_on_cpu/errors.def>
#undef CUDA_ON_CPU_ERROR
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define CUDA_ON_CPU_ERROR(name, value, text) \
  case name: return text;
#include <cuda_on_cpu/errors.def>
#undef CUDA_ON_CPU_ERROR
  }
  return "unrecognized error code";
}

}  // namespace cuda_on_cpu
