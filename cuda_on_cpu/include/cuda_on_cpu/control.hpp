/// @file
/// @brief Settings and queries of the emulated device for tests. This header declares no CUDA
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
  shuffled,  ///< a random permutation, drawn from the seed, for each barrier interval of each block
};

/// Sets the order for later launches.
void set_thread_order(ThreadOrder order, std::uint64_t seed = 0);

/// The number of OS threads that run blocks. Default: the environment variable CUDA_ON_CPU_THREADS,
/// otherwise the number of cores.
void set_worker_threads(unsigned count);
/// The number of these OS threads.
unsigned worker_threads();

/// Whether device and shared memory are initialised with NaN bytes (the default) or with zeros.
void set_nan_fill(bool on);

/// The total number of bytes that cudaMalloc can allocate. Default: the physical memory.
void set_memory_limit(std::size_t bytes);

/// The time for which all blocks may wait for one another before a deadlock is reported. Default:
/// two seconds.
void set_deadlock_timeout(std::chrono::milliseconds timeout);

/// A description of the last error in sentences: the error, the kernel, the block and thread, and
/// the source lines. Empty if there was none.
std::string last_report();

/// Restores the defaults of order, fill, limit and timeout, and clears the errors and the last
/// report. Allocations, the number of worker threads and the device model (device_models.hpp) are
/// kept.
void reset();

/// A live device allocation.
struct Allocation {
  const void* address;   ///< the pointer that cudaMalloc returned
  std::size_t bytes;     ///< the size that was requested
  std::uint64_t number;  ///< counted from 1 in the order of allocation
};
/// The live device allocations, oldest first. At the end of a program these are its leaks.
std::vector<Allocation> live_allocations();

/// While an object exists, device memory stays accessible between calls, and accesses by host code
/// are not detected. It is intended for code that makes many calls in a row without dereferencing
/// device pointers: opening and closing all memory takes system calls around every copy and
/// allocation.
class KeepMemoryOpen {
 public:
  KeepMemoryOpen();
  ~KeepMemoryOpen();
  KeepMemoryOpen(const KeepMemoryOpen&) = delete;
  KeepMemoryOpen& operator=(const KeepMemoryOpen&) = delete;
};

/// While an object exists, this host thread must not use the default stream: launches, asynchronous
/// copies and fills without a stream of their own, and waits for the default stream, fail with
/// cudaErrorInvalidResourceHandle. It is intended for tests of code that must work in any stream.
class ForbidDefaultStream {
 public:
  ForbidDefaultStream();
  ~ForbidDefaultStream();
  ForbidDefaultStream(const ForbidDefaultStream&) = delete;
  ForbidDefaultStream& operator=(const ForbidDefaultStream&) = delete;

 private:
  bool before_;
};

/// Counts of all launches since the start or the last reset_statistics().
struct Statistics {
  std::uint64_t launches;        ///< kernels launched
  std::uint64_t blocks;          ///< blocks run
  std::uint64_t threads;         ///< threads run
  std::uint64_t fiber_switches;  ///< resumptions of a fiber: 0 per barrier interval for threads
                                 ///< that never suspend
};
/// The current counts.
Statistics statistics();
/// Resets the counts to zero.
void reset_statistics();

/// The exit status of a process that was ended after an illegal memory access: host code that
/// dereferences a device pointer, or a kernel that accesses unmapped memory.
inline constexpr int kMemoryFaultExit = 86;

}  // namespace cuda_on_cpu::control
