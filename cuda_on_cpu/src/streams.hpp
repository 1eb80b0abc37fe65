/// @file
/// @brief Which streams there are, and whether this thread may use the default one.
#pragma once

#include <cuda_on_cpu/runtime_types.hpp>

namespace cuda_on_cpu {

/// Whether `what` may go to the stream: it exists, and is not the default one where that is
/// forbidden (control::ForbidDefaultStream). Remembers the error.
cudaError_t check_stream(cudaStream_t stream, const char* what);

}  // namespace cuda_on_cpu
