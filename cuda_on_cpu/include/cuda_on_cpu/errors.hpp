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

/// "cudaErrorInvalidValue" for cudaErrorInvalidValue; "unrecognized error code" for no error of
/// CUDA's.
const char* cudaGetErrorName(cudaError_t error);
/// "invalid argument" for cudaErrorInvalidValue; "unrecognized error code" for no error of CUDA's.
const char* cudaGetErrorString(cudaError_t error);
/// The last error of this host thread, which is forgotten by being asked for.
///
/// A kernel's error can be forgotten here too: in CUDA it would stay until the process ends.
cudaError_t cudaGetLastError();
/// The last error of this host thread, kept.
cudaError_t cudaPeekAtLastError();

}  // namespace cuda_on_cpu
