/// @file
/// @brief The blocks of a cluster, which run at the same time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "grid_launch.hpp"
#include "random.hpp"

namespace cuda_on_cpu {

class BlockRunner;

/// The barrier that all threads of a cluster meet at (`barrier.cluster`).
struct ClusterBarrier {
  unsigned arrived = 0;     ///< threads, at the present phase, that have not exited
  std::uint64_t phase = 0;  ///< those before it are complete
  std::vector<std::vector<unsigned>> waiting;  ///< threads, by the ranks of their blocks
  /// What watchers know a phase by: whoever is late for one may find the next one begun.
  const void* object(std::uint64_t of_phase) const { return &objects_[of_phase % 2]; }

 private:
  char objects_[2] = {};
};

/// A cluster's blocks. Each runs on an OS thread of its own, and so has its own shared memory; but
/// only one of them at a time has its turn. A block passes it on when none of its threads can go
/// on. So nothing here, or in the blocks, is ever used by two at a time, and what happens is the
/// same in each run.
class Cluster {
 public:
  /// Runs all blocks, the calling OS thread one of them. What goes wrong is reported to the launch.
  static void run(GridLaunch& launch, std::uint64_t index);

  unsigned size() const { return static_cast<unsigned>(blocks_.size()); }
  BlockRunner& block(unsigned rank) { return *blocks_[rank].runner; }
  bool has_ended(unsigned rank) const { return (alive_ >> rank & 1u) == 0; }
  ClusterBarrier& barrier() { return barrier_; }

  // --- Called by the block whose turn it is

  /// It has begun, and waits for all to have.
  void begun(unsigned rank);
  /// Some thread of it can go on.
  void goes_on() { idle_ = 0; }
  /// None of its threads can go on, but perhaps look again: lets the other blocks run. False if
  /// none of those can go on, either.
  bool take_turns(unsigned rank, bool may_look_again);
  /// It has ended.
  void ended(unsigned rank);
  /// It waits for blocks of other clusters, or no more. False if no other can be started meanwhile.
  bool begin_waiting();
  void end_waiting();

 private:
  struct Block {
    BlockRunner* runner = nullptr;
    bool may_look_again = false;  ///< when all are idle
  };

  Cluster(GridLaunch& launch, std::uint64_t index);
  void run_block(unsigned rank);
  /// Of the blocks that are not idle, the one to go on, in the order of the settings.
  unsigned next(unsigned rank);
  void hand_to(unsigned rank);
  void await_turn(unsigned rank);

  GridLaunch& launch_;
  const std::uint64_t index_;
  std::vector<Block> blocks_;
  ClusterBarrier barrier_;
  Random random_;
  unsigned waiting_ = 0;  ///< blocks that wait for those of other clusters
  unsigned alive_;        ///< blocks that have not ended: a mask
  unsigned idle_ = 0;     ///< those that could not go on, since some block did: a mask

  std::mutex mutex_;
  std::vector<std::condition_variable> changed_;  ///< by rank
  std::condition_variable left_;
  unsigned turn_ = 0;     ///< whose it is
  unsigned running_ = 0;  ///< OS threads beside the calling one
};

}  // namespace cuda_on_cpu
