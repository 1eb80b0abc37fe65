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

/// Counts the words that are 0xffffffff, as an output is filled with before a run.
void launch_count_unwritten(const void* words, std::int64_t count, unsigned long long* unwritten);

/// Copies single words: to[i] = from[places[i]].
void launch_gather(const void* from, const std::int64_t* places, std::int64_t count, void* to);

}  // namespace convladder::benchmarks
