/// @file
/// @brief What happens when the program touches memory that it may not touch.
#pragma once

namespace cuda_on_cpu {

/// From now on a fault in a kernel becomes that launch's error, and host code that touches device
/// memory ends the process with a sentence. Other faults go to the handler that was there before.
void install_memory_fault_handler();

/// Gives the calling OS thread a stack for the handler, since the one at fault may be exhausted.
void prepare_thread_for_memory_faults();

}  // namespace cuda_on_cpu
