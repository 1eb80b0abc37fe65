/// @file
/// @brief One launch: the state that all OS threads share that run its blocks.
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
  const unsigned cluster_blocks;  ///< of a cluster; 1 without clusters
  const std::uint64_t clusters;

  /// Takes a cluster that no OS thread has taken; false if there is none or the launch has failed.
  bool take_cluster(std::uint64_t* index);
  /// The linear index of a block of the cluster.
  std::uint64_t block_of(std::uint64_t cluster_index, unsigned rank) const;
  /// blockIdx of a block with this linear index.
  uint3 index_of(std::uint64_t block_index) const {
    return {static_cast<unsigned>(block_index % grid.x),
            static_cast<unsigned>(block_index / grid.x % grid.y),
            static_cast<unsigned>(block_index / grid.x / grid.y)};
  }
  /// The number of blocks that have started.
  std::uint64_t begun() const {
    return std::min(next_.load(std::memory_order_relaxed), clusters) * cluster_blocks;
  }
  /// Whether all clusters have been taken.
  bool exhausted() const { return failed() || next_.load(std::memory_order_relaxed) >= clusters; }

  /// The first failure is kept; no block is started after it.
  void fail(cudaError_t error, const std::string& report);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  cudaError_t error() const { return error_; }
  const std::string& report() const { return report_; }

  /// Counts events that may let a waiting block continue.
  void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

  /// The number of times that all blocks have arrived at the grid's barrier.
  std::uint64_t barrier_round() const { return barrier_round_.load(std::memory_order_acquire); }
  /// True for the last block to arrive, which starts the next phase.
  bool block_arrives();

 private:
  const WatchdogClock::time_point launched_ = WatchdogClock::now();
  const std::uint64_t stride_;  ///< step of the shuffled order of the clusters
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
