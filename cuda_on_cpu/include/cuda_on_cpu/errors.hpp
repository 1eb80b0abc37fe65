/// @file
/// @brief cudaError_t with CUDA's names, values and texts.
#pragma once

namespace cuda_on_cpu {

enum cudaError : int {
#define CUDA_ON_CPU_ERROR(name, value, text) name = value,
#include <cuda_on_cpu/errors.def>
#undef CUDA_ON_CPU_ERROR
};
using cudaError_t = cudaError;

/// "cudaErrorInvalidValue" for cudaErrorInvalidValue; "unrecognized error code" for a value that is
/// not an error of CUDA.
const char* cudaGetErrorName(cudaError_t error);
/// "invalid argument" for cudaErrorInvalidValue; "unrecognized error code" for a value that is not
/// an error of CUDA.
const char* cudaGetErrorString(cudaError_t error);
/// Returns and clears the last error of this host thread.
///
/// A kernel's error can be cleared, too; in CUDA it would persist until the process ends.
cudaError_t cudaGetLastError();
/// Returns the last error of this host thread without clearing it.
cudaError_t cudaPeekAtLastError();

}  // namespace cuda_on_cpu
