/// @file graph.hpp
/// @brief Launches recorded once, to be repeated without the host's share.
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "benchmarks/gpu/calls.hpp"
#include "benchmarks/gpu/contest.hpp"

namespace convladder::benchmarks {

/// Fills in registers, shared_bytes, spills and occupancy of a kernel of this program. They stay as
/// they were where it is a library's.
void describe_kernel(const KernelLaunch& launch, Timing& timing);

/// A recorded sequence of launches on the rungs' stream.
class Graph {
 public:
  /// Records what `enqueue` launches. @throws DeviceError if a call in it cannot be recorded: the
  /// stream is whole again then.
  explicit Graph(const std::function<void()>& enqueue);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// Enqueues the sequence.
  void launch() const;

  /// Fills in registers, shared_bytes, spills and occupancy, and launches anew. The main kernel's
  /// numbers stay 0 where it is not one of this program's, but a library's.
  void describe(Timing& timing) const;

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace convladder::benchmarks
