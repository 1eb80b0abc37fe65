/// @file microbenchmarks.hpp
/// @brief Kernels whose requests are known, to hold the microscope against a profiler.
///
/// Compiled by nvcc in a build for GPUs, and for the microscope in one without.
#pragma once

#include <vector>

namespace convladder::benchmarks {

/// Elements of both arrays of a microbenchmark.
constexpr int kMicrobenchmarkElements = 4096;

/// One launch of one block: a warp, but for the transposes, which have 32.
struct Microbenchmark {
  const char* name;
  /// @param from device memory that holds i % 8 in element i
  /// @param to device memory
  void (*run)(const float* from, float* to);
};

/// In the order in which they are profiled.
const std::vector<Microbenchmark>& microbenchmarks();

/// Launches the kernel `next_run`, which does nothing: it parts the runs in a profile.
void begin_run();

}  // namespace convladder::benchmarks
