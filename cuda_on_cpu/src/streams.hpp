/// @file
/// @brief The existing streams, and whether this thread may use the default stream.
#pragma once

#include <cuda_on_cpu/runtime_types.hpp>

namespace cuda_on_cpu {

/// Whether `what` may use the stream: it exists, and is not the default stream if that is forbidden
/// (control::ForbidDefaultStream). Records the error.
cudaError_t check_stream(cudaStream_t stream, const char* what);

}  // namespace cuda_on_cpu
