/// @file
/// @brief One launch: what all the OS threads that run its blocks share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cuda_on_cpu/launch.hpp>
#include <mutex>
#include <string>

#include "settings.hpp"
#include "watchdog.hpp"

namespace cuda_on_cpu {

class GridLaunch {
 public:
  GridLaunch(const cudaLaunchConfig_t& config, const detail::BoundKernel& bound,
             const Settings& how);

  const dim3 grid;
  const dim3 block;
  const unsigned threads;  ///< of a block
  const std::size_t shared_bytes;
  const detail::BoundKernel kernel;
  const Settings settings;
  const std::uint64_t blocks;
  const bool cooperative;
  const dim3 cluster;             ///< blocks of a cluster along x, y, z
  const unsigned cluster_blocks;  ///< of a cluster; 1 if there are none
  const std::uint64_t clusters;

  /// Takes a cluster that nobody has taken; false if there is none left or the launch has failed.
  bool take_cluster(std::uint64_t* index);
  /// The linear index of a cluster's block.
  std::uint64_t block_of(std::uint64_t cluster_index, unsigned rank) const;
  /// blockIdx of a block with this linear index.
  uint3 index_of(std::uint64_t block_index) const {
    return {static_cast<unsigned>(block_index % grid.x),
            static_cast<unsigned>(block_index / grid.x % grid.y),
            static_cast<unsigned>(block_index / grid.x / grid.y)};
  }
  /// How many blocks have begun.
  std::uint64_t begun() const {
    return std::min(next_.load(std::memory_order_relaxed), clusters) * cluster_blocks;
  }
  /// Whether there is no cluster left to take.
  bool exhausted() const { return failed() || next_.load(std::memory_order_relaxed) >= clusters; }

  /// The first failure is kept; no block is started after it.
  void fail(cudaError_t error, const std::string& report);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  cudaError_t error() const { return error_; }
  const std::string& report() const { return report_; }

  /// Counts whatever may let a waiting block go on.
  void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

  /// How often all blocks have arrived at the grid's barrier.
  std::uint64_t barrier_round() const { return barrier_round_.load(std::memory_order_acquire); }
  /// True for the last block to arrive, which starts the next round.
  bool block_arrives();

 private:
  const WatchdogClock::time_point launched_ = WatchdogClock::now();
  const std::uint64_t stride_;  ///< of the walk over the clusters when they are shuffled
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<std::uint64_t> blocks_arrived_{0};
  std::atomic<std::uint64_t> barrier_round_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  cudaError_t error_ = cudaSuccess;
  std::string report_;
};

}  // namespace cuda_on_cpu
