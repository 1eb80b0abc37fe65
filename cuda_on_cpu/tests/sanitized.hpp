/// @file
/// @brief Kernels that are wrong for some arguments.
#pragma once

#include <cuda_runtime.h>

__global__ void write_at(float* data, int index);
__global__ void write_shared_at(int index);
__global__ void write_static_shared_at(int index);
/// Past a barrier, on the stack of a suspended thread.
__global__ void write_local_at(float* out, int index);
__global__ void sum_float4(const float* in, float* out);
