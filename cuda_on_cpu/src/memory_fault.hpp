/// @file
/// @brief Handles accesses to memory that the program must not access.
#pragma once

namespace cuda_on_cpu {

/// Installs the handler: a fault in a kernel becomes an error of the launch, and host code that
/// accesses device memory ends the process with a message. Other faults are passed to the previous
/// handler.
void install_memory_fault_handler();

/// Gives the calling OS thread a stack for the handler, because the faulting stack may be
/// exhausted.
void prepare_thread_for_memory_faults();

}  // namespace cuda_on_cpu
