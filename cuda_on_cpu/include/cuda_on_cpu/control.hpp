/// @file
/// @brief What a test or a program can set and ask about the CPU's "device". Brings in no CUDA
/// names.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_on_cpu::control {

/// Order in which the threads of a block run between two barriers, and blocks within a grid.
enum class ThreadOrder {
  forward,   ///< thread 0, 1, 2, ...
  reverse,   ///< the last thread first
  shuffled,  ///< a new permutation, drawn from the seed, in each barrier interval of each block
};

/// Sets the order for later launches.
void set_thread_order(ThreadOrder order, std::uint64_t seed = 0);

/// Number of OS threads that run blocks. Default: CUDA_ON_CPU_THREADS in the environment, else all
/// cores.
void set_worker_threads(unsigned count);
/// How many there are.
unsigned worker_threads();

/// Whether device and shared memory start as NaN bytes (the default) or as zeros.
void set_nan_fill(bool on);

/// Bytes that cudaMalloc can give in all. Default: physical memory.
void set_memory_limit(std::size_t bytes);

/// How long all blocks may wait for one another before that is called a deadlock. Default: two
/// seconds.
void set_deadlock_timeout(std::chrono::milliseconds timeout);

/// Full sentences about the last error: what, in which kernel, block and thread, at which lines.
/// Empty if there was none.
std::string last_report();

/// Back to the defaults: order, fill, limit, timeout; forgets the errors and the last report.
/// Allocations, the number of worker threads and the device (device_models.hpp) stay.
void reset();

/// A device allocation that is alive.
struct Allocation {
  const void* address;   ///< as cudaMalloc gave it
  std::size_t bytes;     ///< as cudaMalloc was asked for
  std::uint64_t number;  ///< counted from 1 in the order of allocation
};
/// The device allocations that are alive, oldest first: at the end of a program, its leaks.
std::vector<Allocation> live_allocations();

/// While one is alive, device memory stays open between calls, and host code that touches it is not
/// caught. For code that makes many calls in a row and dereferences nothing: to open and close all
/// memory takes system calls, around every copy and allocation.
class KeepMemoryOpen {
 public:
  KeepMemoryOpen();
  ~KeepMemoryOpen();
  KeepMemoryOpen(const KeepMemoryOpen&) = delete;
  KeepMemoryOpen& operator=(const KeepMemoryOpen&) = delete;
};

/// While one is alive, this host thread may not use the default stream: launches, asynchronous
/// copies and fills without a stream of their own, and those that wait, fail with
/// cudaErrorInvalidResourceHandle. For tests of code that should work in any stream.
class ForbidDefaultStream {
 public:
  ForbidDefaultStream();
  ~ForbidDefaultStream();
  ForbidDefaultStream(const ForbidDefaultStream&) = delete;
  ForbidDefaultStream& operator=(const ForbidDefaultStream&) = delete;

 private:
  bool before_;
};

/// What launches have cost since the start or the last reset_statistics().
struct Statistics {
  std::uint64_t launches;  ///< kernels launched
  std::uint64_t blocks;    ///< blocks run
  std::uint64_t threads;   ///< threads run
  std::uint64_t
      fiber_switches;  ///< resumptions of a fiber: 0 an interval for threads that never suspend
};
/// What has been counted so far.
Statistics statistics();
/// Counts from zero again.
void reset_statistics();

/// The exit status of a process that was ended for a memory access that cannot go on: host code
/// that touches device memory, or a kernel that touches memory that is not mapped.
inline constexpr int kMemoryFaultExit = 86;

}  // namespace cuda_on_cpu::control
