/// @file
/// @brief Where errors are kept between the call that found them and the call that asks.
#pragma once

#include <cuda_on_cpu/errors.hpp>
#include <string>

namespace cuda_on_cpu {

/// Remembers `error` as this host thread's last one, unless it is success, and returns it.
cudaError_t remember(cudaError_t error);
/// As above, with the sentences that last_report() will show.
cudaError_t remember(cudaError_t error, std::string report);
/// As above for what went wrong inside a kernel: the next synchronizing call returns it too.
cudaError_t remember_kernel_error(cudaError_t error, std::string report);
/// The kernel error that no synchronizing call has returned yet; forgets it.
cudaError_t take_kernel_error();

std::string last_report();
void forget_errors();

}  // namespace cuda_on_cpu
