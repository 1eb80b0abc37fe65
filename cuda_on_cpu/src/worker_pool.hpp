/// @file
/// @brief The OS threads that run blocks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cuda_on_cpu/watchdog.hpp>
#include <mutex>

#include "grid_launch.hpp"

namespace cuda_on_cpu {

/// Distributes a launch's blocks over the cores. The launching thread takes part, with helpers that
/// are kept for the next launch.
///
/// A block that waits for another block keeps its OS thread, so another helper replaces it during
/// the wait: about as many OS threads as there are cores are busy, and any number of blocks may
/// wait.
class WorkerPool {
 public:
  static WorkerPool& instance();

  unsigned threads() const { return threads_; }
  void set_threads(unsigned count);

  /// Runs the whole grid, one launch at a time.
  void run(GridLaunch& launch);
  /// Of the current grid.
  control::LaunchProgress progress();

  /// The calling OS thread's block waits. False if no further helper can be created.
  bool block_waits();
  void block_goes_on();
  /// Whether all OS threads that have a block wait.
  bool all_wait() const { return waiting_ == running_; }

 private:
  WorkerPool();
  void help();
  bool start_missing_helpers();
  void run_blocks(GridLaunch& launch, bool is_helper);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;
  GridLaunch* launch_ = nullptr;
  unsigned threads_;
  unsigned started_ = 0;               ///< existing helpers
  std::atomic<unsigned> helpers_ = 0;  ///< helpers that work on launch_
  std::atomic<unsigned> wanted_ = 0;   ///< target number of helpers
  std::atomic<unsigned> running_ =
      0;  ///< OS threads that have or take blocks, including the launching one
  std::atomic<unsigned> waiting_ = 0;  ///< OS threads whose block waits
};

}  // namespace cuda_on_cpu
