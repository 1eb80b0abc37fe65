/// @file
/// @brief Kernels that use features of cuda_on_cpu that CUDA does not have.
#pragma once

#include <cuda_runtime.h>

#include <thread>

__global__ void dynamic_shared_is_fresh(unsigned* stale, unsigned bytes,
                                        unsigned long long* address);
__global__ void write_dynamic_shared(unsigned offset);
/// Block b waits until the blocks after it have passed.
__global__ void pass_backwards(unsigned* next);
__global__ void wait_for_own_block(int* flag);
/// All blocks except the first.
__global__ void wait_for_ever(int* flag);
/// Of two blocks, the one on a helper starts to wait when the one on the launching thread has
/// ended.
__global__ void wait_after_the_launching_thread(std::thread::id launching, int* helping);
__global__ void spin_with_nanosleep(volatile int* flag);
/// Each block adds its number in each iteration, and all read the sum of a complete iteration.
__global__ void grid_rounds(unsigned* sums, unsigned rounds, unsigned* mistakes);
__global__ void inspect_places(int* device, int* mistakes);
