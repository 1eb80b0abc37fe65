/// @file cudnn.hpp
/// @brief What both of cuDNN's interfaces need: its status, and a handle on the rungs' stream.
#pragma once

#include <cudnn.h>

#include <functional>
#include <stdexcept>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/kernels.hpp"

namespace convladder::benchmarks {

/// @throws std::runtime_error with cuDNN's word for it
inline void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}

/// The only one; it lives as long as the program.
inline cudnnHandle_t cudnn_handle() {
  static const cudnnHandle_t handle = [] {
    cudnnHandle_t made = nullptr;
    check(cudnnCreate(&made));
    check(cudnnSetStream(made, rung_stream()));
    return made;
  }();
  return handle;
}

/// `weights`, which computes dw, and then db: the whole of the ladder's work.
std::function<void(const Arguments&)> with_bias_gradient(
    const Conv2dProblem& p, bool nhwc, std::function<void(const Arguments&)> weights);

}  // namespace convladder::benchmarks
