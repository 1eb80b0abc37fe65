/// @file
/// @brief Keeps errors between the call that detects them and the call that returns them.
#pragma once

#include <cuda_on_cpu/errors.hpp>
#include <string>

namespace cuda_on_cpu {

/// Records `error` as this host thread's last error, unless it is cudaSuccess, and returns it.
cudaError_t remember(cudaError_t error);
/// As above, with the sentences for last_report().
cudaError_t remember(cudaError_t error, std::string report);
/// As above for an error inside a kernel: the next synchronizing call returns it, too.
cudaError_t remember_kernel_error(cudaError_t error, std::string report);
/// Returns and clears the kernel error that no synchronizing call has returned yet.
cudaError_t take_kernel_error();

std::string last_report();
void forget_errors();

}  // namespace cuda_on_cpu
