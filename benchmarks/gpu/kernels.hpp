/// @file kernels.hpp
/// @brief The benchmarks' own kernels: ceilings, and the check of timed results. All of them are
/// launched on the stream that rungs run on.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace convladder::benchmarks {

/// The stream of rungs, which are compiled with --default-stream per-thread.
inline cudaStream_t rung_stream() { return cudaStreamPerThread; }

/// Copies with one float4 a thread; `bytes` is a multiple of 16.
void launch_copy(void* to, const void* from, std::int64_t bytes);

/// Multiply-adds in registers. @returns how many floating-point operations
double launch_fma(float* unused);

/// Counts the elements of `size` bytes (2 or 4) whose bits are all set, as an output is filled with
/// before a run.
void launch_count_unwritten(const void* elements, std::size_t size, std::int64_t count,
                            unsigned long long* unwritten);

/// Counts the words in which two arrays differ.
void launch_count_different(const void* a, const void* b, std::int64_t count,
                            unsigned long long* different);

/// Copies single elements of `size` bytes (2 or 4): to[i] = from[places[i]].
void launch_gather(const void* from, std::size_t size, const std::int64_t* places,
                   std::int64_t count, void* to);

}  // namespace convladder::benchmarks
